import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Plan } from '../harness/bench.ts';
import { holdPolls } from '../harness/polls.ts';
import { type ProcessTimes, readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { startReplica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCrowd, readLastId } from './crowd.ts';
import { countWaiters, pollerOf, range } from './waiters.ts';

/** The unit of the result of `runIdle`. */
export const IDLE_UNIT = 'ms a second';

/**
 * What 1,000 clients that only poll cost each process, in milliseconds of CPU per second. `settings` are extra
 * variables.
 */
export async function runIdle(plan: Plan, settings: Record<string, string> = {}): Promise<ProcessTimes> {
  const { environment, quick } = plan;
  const url = await openCrowd(plan, 2);
  const short = quick ? { SYNC_WAIT_SECONDS: '2' } : {};
  await using replica = await startReplica(environment, url, { ...short, ...settings });
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
  const seconds = quick ? 4 : 60;
  const before = readProcessTimes(groups);
  await sleep(seconds * 1_000);
  const used = Object.entries(timesBetween(before, readProcessTimes(groups)));
  return Object.fromEntries(used.map(([name, ms]) => [name, ms / seconds / (count / 1_000)]));
}

export const nameIdle = (plan: Plan, process: string): string =>
  `${countWaiters(plan).toLocaleString('en')} clients: CPU of ${process}, for 1,000 of them`;

/** Measures idle clients that each repeat a 29 s poll. */
export const idle: Bench = {
  name: 'idle',
  async run(plan) {
    const used = await runIdle(plan);
    return Object.entries(used).map(([name, ms]) => ({
      ...{ bench: 'idle', what: nameIdle(plan, name), unit: IDLE_UNIT, service: spreadOf([ms]) },
    }));
  },
};
