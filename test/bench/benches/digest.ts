import type { Bench } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { openReplica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { HUNDRED_THOUSAND, openCollection, sizesOf } from './collection.ts';

/** Measures the digests of a large collection, one request after another. Most of the time is spent in Postgres. */
export const digest: Bench = {
  name: 'digest',
  async run(plan) {
    await using replica = await openReplica(plan, await openCollection(plan));
    const { hundred } = sizesOf(plan);
    const timesMs: number[] = [];
    for (let n = 0; n < plan.effort.rounds + 1; n += 1) {
      const begunMs = performance.now();
      const response = await fetch(`http://127.0.0.1:${replica.port}/api/v1/bookmarks/digest`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tokenOf(HUNDRED_THOUSAND, 0)}`,
          'content-type': 'application/json',
        },
        body: '{}',
      });
      const { parts, error } = await response.json();
      if (parts?.length !== 16) throw new Error(`no digest: ${response.status} ${error}`);
      // The first request warms up.
      if (n > 0) timesMs.push(performance.now() - begunMs);
    }
    const service = spreadOf(timesMs);
    return [
      {
        bench: 'digest',
        what: `16 parts of ${hundred.toLocaleString('en')} bookmarks, and the tags`,
        unit: 'ms',
        service,
        mark: { text: '≤ 250', reached: service.median <= 250 },
      },
    ];
  },
};
