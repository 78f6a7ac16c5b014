import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../support/ports.ts';
import { scrape } from '../../support/replica.ts';
import { until } from '../../support/until.ts';
import type { Bench } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { formatRequest, HttpConnection } from '../harness/http-connection.ts';
import { startReplica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCrowd, readLastId } from './crowd.ts';
import { countWaiters } from './waiters.ts';

/**
 * When a replica shuts down, its clients send their polls to other replicas. Measures how many polls they would send in
 * the busiest 100 ms.
 */

const BUCKET_MS = 100;

/** The time when a poll ended, and how long its response asks the client to wait. */
interface End {
  at: number;
  retryAfterMs: number;
}

const largestBucket = (times: readonly number[]): number => {
  const buckets = Map.groupBy(times, (time) => Math.floor(time / BUCKET_MS));
  return Math.max(...[...buckets.values()].map(({ length }) => length));
};

export const drain: Bench = {
  name: 'drain',
  async run(plan) {
    const url = await openCrowd(plan, 2);
    const cursor = await readLastId(url);
    const polls = countWaiters(plan);
    const peaks: { following: number; ignoring: number }[] = [];
    for (let round = 0; round < plan.effort.rounds; round += 1) {
      const metricsPort = await findFreePort();
      await using replica = await startReplica(plan.environment, url, {
        METRICS_PORT: String(metricsPort),
        OVERLOAD_EVENT_LOOP_MS: '0',
        OVERLOAD_POOL_WAIT_MS: '0',
      });
      const { pid } = replica;
      const ends: Promise<End>[] = [];
      for (let user = 1; user <= polls; user += 1) {
        ends.push(holdPoll(replica.port, tokenOf(user), cursor));
        if (user % 100 === 0) await sleep(200);
      }
      await until(async () => (await scrape(metricsPort)).get('bookmarks_waiters') === polls);
      process.kill(pid, 'SIGTERM');
      const all = await Promise.all(ends);
      const following = largestBucket(all.map(({ at, retryAfterMs }) => at + retryAfterMs));
      peaks.push({ following, ignoring: largestBucket(all.map(({ at }) => at)) });
    }
    const following = spreadOf(peaks.map((peak) => peak.following));
    const ignoring = spreadOf(peaks.map((peak) => peak.ignoring));
    return [
      {
        bench: 'drain',
        what: `most polls sent again in ${BUCKET_MS} ms, of ${polls}`,
        unit: '',
        service: following,
        reference: ignoring,
        referenceName: 'clients that ignore retry_after_ms',
        mark: { text: '≤ 1 a ms, and a half for chance', reached: following.median <= 1.5 * BUCKET_MS },
      },
    ];
  },
};

function holdPoll(port: number, token: string, cursor: number): Promise<End> {
  return new Promise((resolve, reject) => {
    const connection = new HttpConnection(port, reject, 20);
    const body = JSON.stringify({ cursor, limit: 50, wait: true });
    connection.send(formatRequest('/api/v1/bookmarks/sync', body, token), (response) => {
      const at = performance.now();
      connection.close();
      if (response.status !== 200) return reject(new Error(`a poll was answered ${response.status}`));
      resolve({ at, retryAfterMs: JSON.parse(response.body.toString()).retry_after_ms ?? 0 });
    });
  });
}
