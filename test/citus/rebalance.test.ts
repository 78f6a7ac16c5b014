import { expect, inject, test } from 'vitest';
import { formatFindings, formatTable } from '../chaos/report.ts';
import { runChaos } from '../chaos/run.ts';
import { SMALL_RUN } from '../chaos/small-run.ts';

// Runs the chaos test on a cluster, with only one kind of fault: a shard moves, and then the cluster is rebalanced.

test('shards are moved and rebalanced during writes, followers and mirrors: nothing is lost, duplicated or missed', {
  timeout: 400_000,
}, async () => {
  const citusUrl = inject('citusUrl')!;
  const followers = { followersPerUser: 6, pauseMs: 1_500 };
  const options = { ...SMALL_RUN, ...followers, citusUrl, seconds: 60, onlyFault: 'shards moved' };
  const { results: all, evidence } = await runChaos(options);
  // Moves cause no warnings. If there is no warning in the log, the check `lived` reports "not shown", which is fine
  // here.
  const results = all.map(({ notShown, ...result }) =>
    notShown === undefined || result.point === 'lived' ? result : { ...result, notShown },
  );
  expect(formatFindings(results), formatTable(results)).toBe('');
  // The exercises of every run also kill processes. Those faults are left out here.
  const moves = evidence.journal.faults.filter(({ kind }) => kind !== 'SIGKILL');
  expect(new Set(moves.map(({ kind, failure }) => failure ?? kind))).toEqual(new Set(['shards moved']));
});
