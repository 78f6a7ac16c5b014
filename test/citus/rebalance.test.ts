import { expect, inject, test } from 'vitest';
import { formatFindings, formatTable } from '../chaos/report.ts';
import { runChaos } from '../chaos/run.ts';
import { SMALL_RUN } from '../chaos/small-run.ts';

// A chaos run on a cluster with one kind of fault: rows move to another node and back.

test('shards are moved and rebalanced under writers, followers and mirrors: nothing is lost, duplicated or missed', {
  timeout: 400_000,
}, async () => {
  const citusUrl = inject('citusUrl')!;
  const followers = { followersPerUser: 6, pauseMs: 1_500 };
  const options = { ...SMALL_RUN, ...followers, citusUrl, seconds: 60, onlyFault: 'shards moved' };
  const { results, evidence } = await runChaos(options);
  expect(formatFindings(results), formatTable(results)).toBe('');
  const moves = evidence.journal.faults.map(({ kind, failure }) => failure ?? kind);
  expect(new Set(moves)).toEqual(new Set(['shards moved']));
});
