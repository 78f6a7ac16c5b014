import type { Bench, Plan } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { openReplica, type Replica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCrowd, readLastId } from './crowd.ts';
import { range } from './waiters.ts';

/** How long the polls ask to wait, and how many clients send such a poll. */
const sizesOf = ({ quick }: Plan) =>
  quick ? { waitSeconds: 1, polls: 20 } : { waitSeconds: 20, polls: 200 };

/** The clients begin at different times during this time, as they would without a benchmark. */
const SPREAD_MS = 2_000;

/** Sends a poll at which nothing is new. Returns how much later than `waitSeconds` the response came, in ms. */
async function measureLateness({ port }: Replica, user: number, cursor: number, waitSeconds: number) {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * SPREAD_MS));
  const sentMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/bookmarks/sync`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf(user, 0)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ cursor, wait_seconds: waitSeconds }),
  });
  const { waited, error } = await response.json();
  if (waited !== true) throw new Error(`a poll was not held: ${response.status} ${error}`);
  return performance.now() - sentMs - waitSeconds * 1_000;
}

/** Measures when polls with `wait_seconds` get their response. */
export const pollEnds: Bench = {
  name: 'poll-ends',
  async run(plan) {
    const { waitSeconds, polls } = sizesOf(plan);
    const url = await openCrowd(plan, 2);
    await using replica = await openReplica(plan, url);
    const cursor = await readLastId(url);
    const lateMs = await Promise.all(
      range(1, polls).map((user) => measureLateness(replica, user, cursor, waitSeconds)),
    );
    const sorted = lateMs.toSorted((a, b) => a - b);
    const p95 = sorted[Math.floor(sorted.length * 0.95)]!;
    return [
      {
        bench: 'poll-ends',
        what: `${polls.toLocaleString('en')} polls with wait_seconds ${waitSeconds}: the response is late by, p95`,
        unit: 'ms',
        service: spreadOf([p95]),
        mark: { text: '≤ 250', reached: p95 <= 250 },
      },
    ];
  },
};
