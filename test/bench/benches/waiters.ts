import { readFileSync } from 'node:fs';
import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { holdPolls, type Poller, type PollProcess, type WakeReport } from '../harness/polls.ts';
import {
  type ProcessGroups,
  readProcessTimes,
  readResidentBytes,
  timesBetween,
} from '../harness/process-time.ts';
import { openReference, openReplica, type Replica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';
import { crowdOf, openCrowd, readLastId, tokensForAll } from './crowd.ts';

/** Measures the memory of held polls and the time to wake them. */

const WAKES_PER_SECOND = 200;
/** How many polls of one account one add wakes. */
const BURST = 500;

const NEW_URL = 'https://bench.example/new';

/**
 * Returns the number of polls: one for each user of the crowd, or fewer if a process may not open that many files. 500
 * files are left for other purposes.
 */
export function countWaiters(plan: Plan): number {
  const limit = Number(
    /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1_024,
  );
  return Math.min(crowdOf(plan), limit - 500);
}

export const range = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, n) => from + n);

/** Makes a client that polls at the replica `at`. An add at the replica `adds` wakes the client. */
export function pollerOf(at: Replica, adds: Replica, user: number, cursor: number, tokenNumber = 0): Poller {
  const token = tokenOf(user, tokenNumber);
  return {
    port: at.port,
    path: '/api/v1/bookmarks/sync',
    body: { cursor, limit: 50, wait: true },
    token,
    wake: { port: adds.port, path: '/api/v1/bookmarks/add', body: { url: NEW_URL }, token },
  };
}

const barePollerOf = (bare: Replica, user: number): Poller => ({
  port: bare.port,
  path: '/hold',
  body: { cursor: 0, limit: 50, user },
  wake: { port: bare.port, path: '/wake', body: { user, url: NEW_URL } },
});

/** The times from an add until the poll's response. `cpuMicros` is the CPU time of a wake, by group of processes. */
interface Woken extends WakeReport {
  cpuMicros: Record<string, number>;
}

/** The memory of one held poll, and the results of waking polls. */
interface Held {
  kilobytes: number;
  wakes: Woken;
}

/** Holds the polls and measures the memory of each. Then wakes some of them one after another. */
async function runHeld(server: Replica, pollers: Poller[], wakes: number): Promise<Held> {
  const before = readResidentBytes(server.pid);
  await using clients = await holdPolls(pollers);
  const kilobytes = (readResidentBytes(server.pid) - before) / 1_024 / pollers.length;
  return { kilobytes, wakes: await wakeAfterWarmUp(clients, wakes, { api: [server.pid] }) };
}

/**
 * Wakes `wakes` clients one after another. Before that, wakes a tenth of this number without measuring, so that all
 * polls are held when measuring starts.
 */
async function wakeAfterWarmUp(clients: PollProcess, wakes: number, groups: ProcessGroups): Promise<Woken> {
  await clients.wake(wakes / 10, WAKES_PER_SECOND / 2);
  const before = readProcessTimes(groups);
  const report = await clients.wake(wakes, WAKES_PER_SECOND);
  const used = Object.entries(timesBetween(before, readProcessTimes(groups)));
  return { ...report, cpuMicros: Object.fromEntries(used.map(([name, ms]) => [name, (ms * 1_000) / wakes])) };
}

/** Wakes all polls of an account with one add. Returns the wakes per second. */
async function runBurst(pollers: Poller[]): Promise<number> {
  await using clients = await holdPolls(pollers);
  const { wakes, seconds } = await clients.wake(pollers.length, 0);
  return wakes / seconds;
}

interface Round {
  ours: Held;
  theirs: Held;
  ourBurst: number;
  theirBurst: number;
}

/**
 * Compares the service with the reference once. Uses new processes, because a process does not return all freed memory
 * to the system.
 */
async function runRound(plan: Plan, url: string, round: number): Promise<Round> {
  const count = countWaiters(plan);
  const wakes = plan.quick ? 50 : 2_000;
  const users = range(1, count);
  await using replica = await openReplica(plan, url);
  await using bare = await openReference(plan, url);
  const cursor = await readLastId(url);
  const hold = {
    ours: () =>
      runHeld(
        replica,
        users.map((user) => pollerOf(replica, replica, user, cursor)),
        wakes,
      ),
    theirs: () =>
      runHeld(
        bare,
        users.map((user) => barePollerOf(bare, user)),
        wakes,
      ),
  };
  const { ours, theirs } = await runInTurn(round, hold);
  const together = crowdOf(plan) + 1 + round;
  const last = await readLastId(url);
  const numbers = range(0, Math.min(BURST, count)).map((n) => n % tokensForAll(plan));
  const burst = {
    ours: () => runBurst(numbers.map((number) => pollerOf(replica, replica, together, last, number))),
    theirs: () => runBurst(numbers.map(() => barePollerOf(bare, together))),
  };
  const bursts = await runInTurn(round, burst);
  return { ours, theirs, ourBurst: bursts.ours, theirBurst: bursts.theirs };
}

/** Runs both sides. In even rounds our side runs first, in odd rounds the other side. */
async function runInTurn<T>(
  round: number,
  { ours, theirs }: Record<'ours' | 'theirs', () => Promise<T>>,
): Promise<Record<'ours' | 'theirs', T>> {
  if (round % 2 === 0) return { ours: await ours(), theirs: await theirs() };
  const second = await theirs();
  return { ours: await ours(), theirs: second };
}

/** Runs two replicas with waiters on each. Adds at one replica wake the waiters of the other. */
async function runAcross(plan: Plan, url: string): Promise<Woken> {
  const { environment, quick } = plan;
  const each = quick ? 100 : 2_000;
  await using left = await openReplica(plan, url);
  await using right = await openReplica(plan, url, 'second');
  const cursor = await readLastId(url);
  const pollers = [
    ...range(1, each).map((user) => pollerOf(left, right, user, cursor)),
    ...range(1 + each, each).map((user) => pollerOf(right, left, user, cursor)),
  ];
  await using clients = await holdPolls(pollers);
  const groups = { api: [left.pid, right.pid], redis: [environment.redis.pid] };
  return await wakeAfterWarmUp(clients, quick ? 50 : 2_000, groups);
}

function linesOf(count: number, rounds: readonly Round[]): Line[] {
  const spread = (pick: (round: Round) => number) => spreadOf(rounds.map(pick));
  const held = count.toLocaleString('en');
  const memory = spread(({ ours, theirs }) => ours.kilobytes / theirs.kilobytes);
  const wake = spread(({ ours, theirs }) => ours.wakes.latency.p99 / theirs.wakes.latency.p99);
  const burst = spread(({ ourBurst, theirBurst }) => ourBurst / theirBurst);
  const names = { bench: 'waiters', referenceName: 'bare Fastify holding the same polls' };
  const p50 = spread(({ ours }) => ours.wakes.latency.p50);
  return [
    {
      ...names,
      what: `memory of ${held} held polls`,
      unit: 'KB each',
      service: spread(({ ours }) => ours.kilobytes),
      reference: spread(({ theirs }) => theirs.kilobytes),
      ratio: memory,
      mark: { text: '≤ 1.25', reached: memory.median <= 1.25 },
    },
    {
      ...names,
      what: `${WAKES_PER_SECOND} wakes a second among ${held}, from the add to the response, p99`,
      unit: 'ms',
      service: spread(({ ours }) => ours.wakes.latency.p99),
      reference: spread(({ theirs }) => theirs.wakes.latency.p99),
      ratio: wake,
      mark: { text: '≤ 2', reached: wake.median <= 2 },
      note: `p50 ${p50.median.toFixed(1)} ms; the bare server’s ${spread(({ theirs }) => theirs.wakes.latency.p50).median.toFixed(1)} ms`,
    },
    {
      ...names,
      what: `${Math.min(BURST, count)} polls of one account woken by one add`,
      unit: 'wakes/s',
      service: spread(({ ourBurst }) => ourBurst),
      reference: spread(({ theirBurst }) => theirBurst),
      ratio: burst,
      mark: { text: '≥ 0.1', reached: burst.median >= 0.1 },
    },
  ];
}

export const waiters: Bench = {
  name: 'waiters',
  async run(plan) {
    const url = await copyForWrites(plan, await openCrowd(plan, 2), 'waiting');
    const rounds: Round[] = [];
    for (let n = 0; n < Math.min(3, plan.effort.rounds); n += 1) rounds.push(await runRound(plan, url, n));
    const across: WakeReport[] = [];
    for (let n = 0; n < Math.min(3, plan.effort.rounds); n += 1) across.push(await runAcross(plan, url));
    const p99 = spreadOf(across.map(({ latency }) => latency.p99));
    const p50 = spreadOf(across.map(({ latency }) => latency.p50));
    return [
      ...linesOf(countWaiters(plan), rounds),
      {
        bench: 'waiters',
        what: 'woken by an add at the other of two replicas, 2,000 waiters each, p99',
        unit: 'ms',
        service: p99,
        mark: { text: '< 50 ms', reached: p99.median < 50 },
        note: `p50 ${p50.median.toFixed(1)} ms`,
      },
    ];
  },
};
