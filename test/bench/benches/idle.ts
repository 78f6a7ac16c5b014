import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Plan } from '../harness/bench.ts';
import { holdPolls } from '../harness/polls.ts';
import { type ProcessTimes, readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { startReplica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCrowd, readLastId } from './crowd.ts';
import { countWaiters, pollerOf, range } from './waiters.ts';

/**
 * Measures clients that only poll. Returns the CPU time of each process for 1,000 of these clients, in milliseconds per
 * second.
 */
async function runIdle(plan: Plan): Promise<ProcessTimes> {
  const { environment, quick } = plan;
  const url = await openCrowd(plan, 2);
  await using replica = await startReplica(environment, url, quick ? { SYNC_WAIT_SECONDS: '1' } : {});
  const cursor = await readLastId(url);
  const count = countWaiters(plan);
  await using _clients = await holdPolls(
    range(1, count).map((user) => pollerOf(replica, replica, user, cursor)),
  );
  const groups = {
    api: [replica.pid],
    postgres: [environment.postgresPid],
    redis: [environment.redis.pid],
  };
  // Each client polls at least once in this time.
  const seconds = quick ? 1.5 : 60;
  const before = readProcessTimes(groups);
  await sleep(seconds * 1_000);
  const used = Object.entries(timesBetween(before, readProcessTimes(groups)));
  return Object.fromEntries(used.map(([name, ms]) => [name, ms / seconds / (count / 1_000)]));
}

/** Measures idle clients that each repeat a 29 s poll. */
export const idle: Bench = {
  name: 'idle',
  async run(plan) {
    const clients = `${countWaiters(plan).toLocaleString('en')} clients`;
    const used = await runIdle(plan);
    return Object.entries(used).map(([name, ms]) => ({
      bench: 'idle',
      what: `${clients}: CPU of ${name}, for 1,000 of them`,
      unit: 'ms a second',
      service: spreadOf([ms]),
    }));
  },
};
