import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../harness/bench.ts';
import { holdPolls } from '../harness/polls.ts';
import { readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { startReplica } from '../harness/replica.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCrowd, readLastId } from './crowd.ts';
import { countWaiters, pollerOf, range } from './waiters.ts';

/** Idle clients, each polling again after its wait of 29 s: what they cost while nothing happens. */
export const idle: Bench = {
  name: 'idle',
  async run(plan) {
    const { environment, quick } = plan;
    const url = await openCrowd(plan, 2);
    await using replica = await startReplica(environment, url, quick ? { SYNC_WAIT_SECONDS: '2' } : {});
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
    // Each waits at least once in this time.
    const seconds = quick ? 4 : 60;
    const before = readProcessTimes(groups);
    await sleep(seconds * 1_000);
    const used = timesBetween(before, readProcessTimes(groups));
    return Object.entries(used).map(([name, ms]) => ({
      bench: 'idle',
      what: `${count.toLocaleString('en')} clients: CPU of ${name}, for 1,000 of them`,
      unit: 'ms a second',
      service: spreadOf([ms / seconds / (count / 1_000)]),
    }));
  },
};
