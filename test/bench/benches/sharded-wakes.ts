import type { Bench, Plan } from '../harness/bench.ts';
import { startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { type Spread, spreadOf } from '../harness/stats.ts';
import { crowdOf, openCrowd, readLastId, tokensForAll } from './crowd.ts';
import { IDLE_UNIT, nameIdle, runIdle } from './idle.ts';
import {
  countWaiters,
  type Held,
  pollerOf,
  range,
  runAcross,
  runBurst,
  runHeld,
  type Woken,
} from './waiters.ts';

/** What `waiters` and `idle` measure, with a channel for each user (`WAKE_CHANNELS=sharded`) beside one channel for all, on one Redis. */

const ROUNDS = 3;

/** An even number: of a round's two ways the first finds Postgres at work still on the rows laid down. */
const IDLE_ROUNDS = 2;

type Way = 'one' | 'sharded';

/** What each way gave, round by round, both in each. */
interface Both<Result> {
  sharded: Result[];
  one: Result[];
}

/** Runs both ways in each round, the first one in turn. */
async function runBoth<Result>(rounds: number, run: (way: Way, round: number) => Promise<Result>) {
  const both: Both<Result> = { sharded: [], one: [] };
  for (let round = 0; round < rounds; round += 1) {
    const ways: Way[] = round % 2 === 0 ? ['one', 'sharded'] : ['sharded', 'one'];
    for (const way of ways) both[way].push(await run(way, round));
  }
  return both;
}

function lineOf<Result>(
  names: Pick<Line, 'bench' | 'what' | 'unit'>,
  { sharded, one }: Both<Result>,
  pick: (result: Result) => number,
): Line {
  const ratios = sharded.map((result, round) => pick(result) / pick(one[round]!));
  return {
    ...names,
    service: spreadOf(sharded.map(pick)),
    reference: spreadOf(one.map(pick)),
    referenceName: 'WAKE_CHANNELS=one',
    ratio: spreadOf(ratios),
  };
}

const cpuOf = (results: readonly Woken[]): Record<string, Spread> =>
  Object.fromEntries(
    Object.keys(results[0]!.cpuMicros).map((name) => [
      name,
      spreadOf(results.map(({ cpuMicros }) => cpuMicros[name]!)),
    ]),
  );

interface Round extends Held {
  burst: number;
}

/** In a fresh process, since memory once taken is not given back. */
async function runRound(plan: Plan, url: string, way: Way, round: number): Promise<Round> {
  const count = countWaiters(plan);
  await using replica = await startReplica(plan.environment, url, { WAKE_CHANNELS: way });
  const cursor = await readLastId(url);
  const pollers = range(1, count).map((user) => pollerOf(replica, replica, user, cursor));
  const held = await runHeld(replica, pollers, plan.quick ? 100 : 2_000);
  const [together, last] = [crowdOf(plan) + 1 + round, await readLastId(url)];
  const numbers = range(0, count).map((n) => n % tokensForAll(plan));
  const burst = await runBurst(numbers.map((number) => pollerOf(replica, replica, together, last, number)));
  return { ...held, burst };
}

export const waitersSharded: Bench = {
  name: 'waiters-sharded',
  async run(plan) {
    const url = await plan.environment.copy(await openCrowd(plan, 2), 'waiting_sharded');
    const rounds = Math.min(ROUNDS, plan.effort.rounds);
    const alone = await runBoth(rounds, (way, round) => runRound(plan, url, way, round));
    const across = await runBoth(rounds, (way) => runAcross(plan, url, { WAKE_CHANNELS: way }));
    const held = countWaiters(plan).toLocaleString('en');
    const name = (what: string, unit: string) => ({ bench: 'waiters-sharded', what, unit });
    const others = 'woken by an add at the other of two replicas, 2,000 waiters each';
    return [
      lineOf(name(`memory of ${held} held polls`, 'KB each'), alone, ({ kilobytes }) => kilobytes),
      lineOf(name(`wakes among ${held}, p99`, 'ms'), alone, ({ wakes }) => wakes.latency.p99),
      lineOf(name(`${held} polls of one account woken by one add`, 'wakes/s'), alone, ({ burst }) => burst),
      {
        ...lineOf(name(`${others}, p99`, 'ms'), across, ({ latency }) => latency.p99),
        ...{ cpu: cpuOf(across.sharded), referenceCpu: cpuOf(across.one) },
      },
    ];
  },
};

export const idleSharded: Bench = {
  name: 'idle-sharded',
  async run(plan) {
    const rounds = Math.min(IDLE_ROUNDS, plan.effort.rounds);
    const both = await runBoth(rounds, (way) => runIdle(plan, { WAKE_CHANNELS: way }));
    return Object.keys(both.one[0]!).map((process) =>
      lineOf(
        { bench: 'idle-sharded', what: nameIdle(plan, process), unit: IDLE_UNIT },
        both,
        (used) => used[process]!,
      ),
    );
  },
};
