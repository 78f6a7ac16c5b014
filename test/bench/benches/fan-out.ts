import { setImmediate as nextTurn } from 'node:timers/promises';
import { openCoordination } from '../../../src/coordination/open.ts';
import type { Coordination } from '../../../src/coordination/port.ts';
import { accessTo } from '../../support/redis-access.ts';
import { silentLog } from '../../support/silent-log.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { readProcessTimes, timesBetween } from '../harness/process-time.ts';
import type { Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';

/**
 * Measures how fast a notification reaches many replicas. This process runs the coordination of all replicas, with
 * waiters on many channels.
 */

const WAIT_MS = 3_600_000;

/**
 * After this many notifications, the benchmark waits until all are delivered, so that queued notifications do not delay
 * a replica's heartbeat.
 */
const BURST = 20;

const STALL_MS = 60_000;

async function openReplicas(
  { environment, quick }: Plan,
  stack: AsyncDisposableStack,
): Promise<Coordination[]> {
  const replicas: Coordination[] = [];
  for (let n = 0; n < (quick ? 10 : 100); n += 1) {
    const coordination = await openCoordination(
      {
        redis: accessTo(environment.redis.url, 'fan-out'),
        windowMs: 60_000,
        maxHeld: 1e6,
        maxHeldPerHolder: 1e6,
      },
      { log: silentLog, runImport: async () => {} },
    );
    stack.defer(() => coordination.close());
    replicas.push(coordination);
  }
  return replicas;
}

/** Registers `count` waiters on the replicas in turn, each for a channel of its own. Returns the bytes per waiter. */
function holdWaits(replicas: readonly Coordination[], count: number): number {
  const before = process.memoryUsage.rss();
  for (let user = 0; user < count; user += 1) {
    const { notifier, clock } = replicas[user % replicas.length]!;
    const waiter = notifier.register(`changes:${user}`, `holder ${user}`);
    waiter.hold();
    void waiter.next(clock.now() + WAIT_MS);
  }
  return (process.memoryUsage.rss() - before) / count;
}

/**
 * Resolves when `count()` reaches `expected`. Rejects if the count stops rising, which happens when a lost connection
 * loses notifications.
 */
async function untilReceived(count: () => number, expected: number): Promise<void> {
  let [last, changedAt] = [count(), performance.now()];
  while (last < expected) {
    await nextTurn();
    if (count() !== last) [last, changedAt] = [count(), performance.now()];
    if (performance.now() - changedAt > STALL_MS)
      throw new Error(`${last} of ${expected} notifications were received`);
  }
}

/**
 * Sends `wakes` notifications from the first replica, each to a different channel. Resolves with the number of
 * deliveries when all other replicas have received the notifications.
 */
async function wakeAll(replicas: readonly Coordination[], channels: number, wakes: number): Promise<number> {
  const received = () => replicas.reduce((sum, { counters }) => sum + counters.wakesReceived, 0);
  const before = received();
  for (let sent = 0; sent < wakes; ) {
    for (let n = 0; n < BURST; n += 1) {
      replicas[0]!.notifier.notify(`changes:${(sent++ * 7_919) % channels}`);
      await nextTurn();
    }
    await untilReceived(() => received() - before, sent * (replicas.length - 1));
  }
  return received() - before;
}

export const fanOut: Bench = {
  name: 'fan-out',
  async run(plan): Promise<Line[]> {
    await using stack = new AsyncDisposableStack();
    const replicas = await openReplicas(plan, stack);
    const channels = plan.quick ? 10_000 : 1_000_000;
    const bytes = holdWaits(replicas, channels);
    await wakeAll(replicas, channels, BURST);
    const groups = { replicas: [process.pid], redis: [plan.environment.redis.pid] };
    const rates: number[] = [];
    const micros: Record<string, number[]> = { replicas: [], redis: [] };
    for (let round = 0; round < plan.effort.rounds; round += 1) {
      const [startedAt, before] = [performance.now(), readProcessTimes(groups)];
      const deliveries = await wakeAll(replicas, channels, plan.quick ? 100 : 1_000);
      const used = timesBetween(before, readProcessTimes(groups));
      rates.push((deliveries / (performance.now() - startedAt)) * 1_000);
      for (const [name, ms] of Object.entries(used)) micros[name]!.push((ms * 1_000) / deliveries);
    }
    const among = `among ${replicas.length} replicas`;
    const line = (what: string, unit: string, values: number[]): Line => ({
      ...{ bench: 'fan-out', what, unit, service: spreadOf(values) },
    });
    return [
      line(`memory of ${channels.toLocaleString('en')} waits of as many channels ${among}`, 'bytes each', [
        bytes,
      ]),
      line(`deliveries of wakes ${among}, all in one process`, '/s', rates),
      line(`a delivery of a wake ${among}: CPU of a replica`, 'µs', micros.replicas!),
      line(`a delivery of a wake ${among}: CPU of Redis`, 'µs', micros.redis!),
    ];
  },
};
