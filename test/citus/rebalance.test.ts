import { expect, inject, test } from 'vitest';
import { formatFindings, formatTable } from '../chaos/report.ts';
import { runChaos } from '../chaos/run.ts';
import { SMALL_RUN } from '../chaos/small-run.ts';

// A chaos run on a cluster with one kind of fault: rows move to another node and back.

test('shards are moved and rebalanced during writes, followers and mirrors: nothing is lost, duplicated or missed', {
  timeout: 400_000,
}, async () => {
  const citusUrl = inject('citusUrl')!;
  const followers = { followersPerUser: 6, pauseMs: 1_500 };
  const options = { ...SMALL_RUN, ...followers, citusUrl, seconds: 60, onlyFault: 'shards moved' };
  const { results: all, evidence } = await runChaos(options);
  // Moves cause no warnings in the log. If the log has none at all, its check reports that it has shown nothing.
  const results = all.map(({ notShown, ...result }) =>
    notShown === undefined || result.point === 'lived' ? result : { ...result, notShown },
  );
  expect(formatFindings(results), formatTable(results)).toBe('');
  // Every run also kills processes, to test what must survive a kill.
  const moves = evidence.journal.faults.filter(({ kind }) => kind !== 'SIGKILL');
  expect(new Set(moves.map(({ kind, failure }) => failure ?? kind))).toEqual(new Set(['shards moved']));
});
