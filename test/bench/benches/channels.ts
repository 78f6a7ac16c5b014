import { Redis } from 'ioredis';
import type { Bench, Plan } from '../harness/bench.ts';
import { readProcessTimes, timesBetween } from '../harness/process-time.ts';
import type { Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';

/**
 * What a wake would cost by sharded channels, each for some users, that a replica subscribes to while one of its waiters needs
 * them: a simulation with connections alone, beside one channel that all replicas hear. The service has either: `WAKE_CHANNELS`.
 */

/** Channels that topics are spread over; as many as topics: each has its own. */
const CHANNELS = [1, 65_536, 1_000_000];

/** Names of a command. */
const BATCH = 1_000;

/** Published before their deliveries are awaited. */
const BURST = 20;

/** Spreads numbers that follow each other. */
const channelOf = (topic: number, channels: number): string =>
  `{wakes:${(Math.imul(topic, 2_654_435_761) >>> 0) % channels}}`;

interface Simulation {
  replicas: Redis[];
  publisher: Redis;
  /** Messages that arrived. */
  heard: number;
}

async function openSimulation({ environment }: Plan, count: number, stack: AsyncDisposableStack) {
  const open = () => {
    const redis = new Redis(environment.redis.url);
    stack.defer(() => redis.disconnect());
    return redis;
  };
  const replicas = Array.from({ length: count }, open);
  const simulation: Simulation = { replicas, publisher: open(), heard: 0 };
  for (const replica of replicas)
    replica.on('smessage', () => {
      simulation.heard += 1;
    });
  return simulation;
}

/** The channels of each replica's waiters: topics are at one replica each, by turns. */
function listChannels(replicas: number, topics: number, channels: number): Set<string>[] {
  const needed = Array.from({ length: replicas }, () => new Set<string>());
  for (let topic = 0; topic < topics; topic += 1) needed[topic % replicas]!.add(channelOf(topic, channels));
  return needed;
}

async function subscribe({ replicas }: Simulation, needed: readonly Set<string>[]): Promise<void> {
  const work = replicas.map(async (replica, n) => {
    const names = [...needed[n]!];
    for (let from = 0; from < names.length; from += BATCH)
      await replica.ssubscribe(...names.slice(from, from + BATCH));
  });
  await Promise.all(work);
}

async function wakeAll(simulation: Simulation, topics: number, channels: number, wakes: number) {
  const before = simulation.heard;
  let expected = 0;
  for (let sent = 0; sent < wakes; sent += BURST) {
    const sending = Array.from({ length: BURST }, (_, n) => {
      const topic = ((sent + n) * 7_919) % topics;
      return simulation.publisher.spublish(channelOf(topic, channels), `changes:${topic}`);
    });
    for (const receivers of await Promise.all(sending)) expected += Number(receivers);
    while (simulation.heard - before < expected) await new Promise(setImmediate);
  }
  return expected;
}

const readMemory = async (redis: Redis): Promise<number> =>
  Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);

async function runChannels(plan: Plan, channels: number): Promise<Line[]> {
  await using stack = new AsyncDisposableStack();
  const [count, topics, wakes] = plan.quick ? [10, 10_000, 100] : [100, 1_000_000, 2_000];
  const simulation = await openSimulation(plan, count, stack);
  const groups = { replicas: [process.pid], redis: [plan.environment.redis.pid] };
  const needed = listChannels(count, topics, channels);
  const subscriptions = needed.reduce((sum, { size }) => sum + size, 0);
  const [memory, begun] = [await readMemory(simulation.publisher), readProcessTimes(groups)];
  await subscribe(simulation, needed);
  const subscribing = timesBetween(begun, readProcessTimes(groups));
  const bytes = (await readMemory(simulation.publisher)) - memory;
  await wakeAll(simulation, topics, channels, BURST);
  const micros: Record<string, number[]> = { replicas: [], redis: [] };
  let deliveries = 0;
  for (let round = 0; round < plan.effort.rounds; round += 1) {
    const before = readProcessTimes(groups);
    deliveries = (await wakeAll(simulation, topics, channels, wakes)) / wakes;
    const used = timesBetween(before, readProcessTimes(groups));
    for (const [name, ms] of Object.entries(used)) micros[name]!.push((ms * 1_000) / wakes);
  }
  const among = `${channels.toLocaleString('en')} channels, ${count} replicas, ${topics.toLocaleString('en')} topics`;
  const line = (what: string, unit: string, values: number[]): Line => ({
    ...{ bench: 'channels', what: `${among}: ${what}`, unit, service: spreadOf(values) },
  });
  return [
    line('replicas that hear a wake', 'each', [deliveries]),
    line('a wake: CPU of all replicas', 'µs', micros.replicas!),
    line('a wake: CPU of Redis', 'µs', micros.redis!),
    line('subscriptions', 'in all', [subscriptions]),
    line('a subscription: CPU of Redis', 'µs', [(subscribing.redis! * 1_000) / subscriptions]),
    line('a subscription: memory of Redis', 'bytes', [bytes / subscriptions]),
  ];
}

export const channels: Bench = {
  name: 'channels',
  async run(plan): Promise<Line[]> {
    const lines: Line[] = [];
    for (const count of CHANNELS) lines.push(...(await runChannels(plan, count)));
    return lines;
  },
};
