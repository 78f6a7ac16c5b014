import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';
import { raceAtCap } from './cap-race.ts';
import { checkAll } from './checks/check.ts';
import type { Result } from './checks/findings.ts';
import { exercise } from './exercises.ts';
import { FAULT_KINDS } from './faults.ts';
import { type Fleet, openFleet } from './fleet.ts';
import { follow } from './follow.ts';
import { sendBursts } from './greedy.ts';
import { type Evidence, type Journal, type Limits, nowMs, openJournal, type Rest } from './journal.ts';
import { mirror } from './mirror.ts';
import { deriveSeed, seedRandom } from './random.ts';
import { readAgainAndAgain } from './reader.ts';
import type { RedisKind } from './redis-nodes.ts';
import { awaitFollowers, awaitRest, reportAll } from './rest.ts';
import { runFaults } from './schedule.ts';
import type { SharedUser } from './users.ts';
import { Writer } from './writer.ts';

/** The options of a run. */
export interface RunOptions {
  seed: number;
  /** How long the clients work, unless `isEnough` ends the run. */
  seconds: number;
  /**
   * Called twice a second with the evidence so far, which does not yet contain the final database. Returning true ends
   * the run.
   */
  isEnough?: (evidence: Evidence) => boolean;
  redis: RedisKind;
  /**
   * The url of a Citus cluster's coordinator. The run may crash the nodes of the cluster. By default, the run starts
   * its own Postgres.
   */
  citusUrl?: string | undefined;
  /** The number of processes with the role `api`, and with the role `worker`. */
  fleet: { apis: number; workers: number };
  users: number;
  writersPerUser: number;
  followersPerUser: number;
  mirrorsPerUser: number;
  /** The mean pause between two calls of a writer. */
  pauseMs: number;
  /** Whether writers also replace collections. A replace makes the user's mirrors start again from nothing. */
  withReplaces: boolean;
  /** The mean pause between two reads of a reader. */
  readerPauseMs: number;
  limits: Limits;
  /** How long a poll is held. */
  syncWaitSeconds: number;
  /** Whether faults happen. */
  withFaults: boolean;
  /** If set, only faults of this kind happen. */
  onlyFault?: string;
  /** A defect that a test introduces to show that the checks find it. */
  mutation?: Mutation | undefined;
  log: (line: string) => void;
}

/** An intentional defect. It has a name, and one or more of the other fields. */
export interface Mutation {
  name: string;
  /** Changes the database before the clients start. */
  apply?: (fleet: Fleet) => Promise<void>;
  /** Runs at the same time as the clients, until the signal aborts. */
  during?: (fleet: Fleet, signal: AbortSignal) => Promise<void>;
  /** Changes, in place, the bytes that a process is about to send to Redis. */
  onRedisRequest?: (chunk: Buffer) => void;
  /** Replaces the `fetch` of readers. */
  readerFetch?: typeof fetch;
}

export const DEFAULTS: Omit<RunOptions, 'seed' | 'log'> = {
  seconds: 60,
  redis: 'single',
  fleet: { apis: 3, workers: 2 },
  users: 40,
  writersPerUser: 5,
  followersPerUser: 5,
  mirrorsPerUser: 1,
  pauseMs: 3_000,
  withReplaces: true,
  readerPauseMs: 8_000,
  limits: { bookmarks: 120, requests: 40, windowMs: 10_000 },
  syncWaitSeconds: 29,
  withFaults: true,
};

const GREEDY = 4;

/** The time limit for calls that are in flight when the writers stop. */
const LAST_CALLS_MS = 200_000;

/**
 * Starts the fleet, lets the clients work while faults happen, waits until everything is idle, and checks the evidence.
 */
export async function runChaos(options: RunOptions): Promise<{ results: Result[]; evidence: Evidence }> {
  const { limits, redis, citusUrl, syncWaitSeconds, mutation, seconds, log } = options;
  const { onRedisRequest } = mutation ?? {};
  const journal = openJournal();
  await using fleet = await openFleet(
    { limits, redis, citusUrl, syncWaitSeconds, ...options.fleet, onRedisRequest },
    journal,
  );
  const before = await reportAll(fleet);
  const writing = new AbortController();
  const reading = new AbortController();
  await mutation?.apply?.(fleet);
  const mutated = mutation?.during?.(fleet, reading.signal);
  const clients = await startClients(fleet, journal, options, writing.signal, reading.signal);
  const draw = seedRandom(deriveSeed(options.seed, 0));
  if (options.withFaults) await exerciseAll(fleet, journal, options, clients, writing.signal, reading.signal);
  const kinds = FAULT_KINDS.filter(({ kind }) => kind === (options.onlyFault ?? kind));
  const faults = options.withFaults ? runFaults(fleet, journal, draw, writing.signal, kinds) : undefined;
  log(`${seconds} s of work begin`);
  const progress = setInterval(() => log(describeProgress(journal)), 15_000);
  const wasEnough = await untilEnough(options, journal);
  writing.abort();
  await faults;
  log(`all faults are repaired: ${describeProgress(journal)}`);
  await within(
    Promise.all(clients.writers),
    LAST_CALLS_MS,
    journal,
    'a call was still in progress long after the end',
  );
  log('all calls have ended');
  const behind = wasEnough ? [] : await awaitFollowers(fleet, journal);
  clearInterval(progress);
  log('all followers got everything; mirrors catch up');
  reading.abort();
  await Promise.all([...clients.readers, mutated]);
  const rest = await awaitRest(fleet, before, behind, log);
  log('everything is idle');
  const evidence = { journal, rest, limits };
  return { results: checkAll(evidence), evidence };
}

/** An empty final state for `isEnough`, because there is no final state while the run continues. */
const EMPTY_REST: Rest = {
  rows: [],
  recountFaults: [],
  leftovers: [],
  behind: [],
  collections: new Map(),
  looked: { processes: 0, gauges: 0 },
};

async function untilEnough(
  { seconds, limits, isEnough = () => false }: RunOptions,
  journal: Journal,
): Promise<boolean> {
  const endMs = nowMs() + seconds * 1_000;
  while (nowMs() < endMs) {
    if (isEnough({ journal, limits, rest: EMPTY_REST })) return true;
    await sleep(Math.max(1, Math.min(500, endMs - nowMs())));
  }
  return false;
}

async function within(
  work: Promise<unknown>,
  limitMs: number,
  journal: Journal,
  otherwise: string,
): Promise<void> {
  const timer = new AbortController();
  const late = sleep(limitMs, otherwise, { signal: timer.signal });
  const message = await Promise.race([work.then(() => undefined), late]);
  timer.abort();
  await late.catch(() => {});
  if (message !== undefined) journal.surprises.push(message);
}

/**
 * The running clients, as promises that resolve when the clients end. The writers end when the work ends. The readers
 * end when they have read everything.
 */
interface RunningClients {
  writers: Promise<unknown>[];
  readers: Promise<unknown>[];
}

async function startClients(
  fleet: Fleet,
  journal: Journal,
  options: RunOptions,
  writing: AbortSignal,
  reading: AbortSignal,
): Promise<RunningClients> {
  const { origin } = fleet.balancer;
  const { seed, pauseMs, withReplaces, readerPauseMs, limits } = options;
  const { writersPerUser, followersPerUser, mirrorsPerUser } = options;
  const clients: RunningClients = { writers: [], readers: [] };
  const { writers, readers } = clients;
  const folder = makeFolder('mirrors', runDir());
  let parts = 1;
  const own = () => seedRandom(deriveSeed(seed, ++parts));
  for (let n = 0; n < options.users; n += 1) {
    const { id, tokens } = await fleet.user(writersPerUser + followersPerUser + mirrorsPerUser + 2);
    const take = () => tokens.pop()!;
    const user: SharedUser = { id, known: [], passing: [] };
    for (let w = 1; w <= followersPerUser; w += 1) {
      const name = `follower ${id}-${w}`;
      readers.push(follow({ name, user: id, origin, token: take(), journal, draw: own() }, reading));
    }
    for (let w = 1; w <= mirrorsPerUser; w += 1) {
      const store = (n + w) % 2 === 0 ? 'memory' : 'sqlite';
      const parts = { name: `mirror ${id}-${w}`, user: id, origin, token: take(), journal, draw: own() };
      readers.push(mirror({ ...parts, store, folder }, reading));
    }
    for (let w = 1; w <= writersPerUser; w += 1) {
      const parts = { name: `${id}-${w}`, origin, token: take(), user, journal, draw: own() };
      writers.push(new Writer({ ...parts, pauseMs, withReplaces }).run(writing));
    }
    const fetch = options.mutation?.readerFetch;
    const reader = { user: id, origin, token: take(), journal, draw: own(), pauseMs: readerPauseMs, fetch };
    readers.push(readAgainAndAgain(reader, reading));
    if (n < GREEDY) {
      const greedy = { origin, token: take(), journal, draw: own(), burst: limits.requests * 2 };
      writers.push(sendBursts(greedy, writing));
    }
  }
  return clients;
}

/**
 * Runs the exercises, which produce the events that every run must contain. Adds to `clients` those clients that
 * continue after the exercises.
 */
async function exerciseAll(
  fleet: Fleet,
  journal: Journal,
  { seed, limits, log }: RunOptions,
  clients: RunningClients,
  writing: AbortSignal,
  reading: AbortSignal,
): Promise<void> {
  const { id: user, tokens } = await fleet.user(3);
  const firstRace = Promise.withResolvers<void>();
  const { origin } = fleet.balancer;
  const race = raceAtCap({ user, tokens, origin, journal, limits }, firstRace.resolve, writing);
  clients.writers.push(race);
  const folder = makeFolder('exercises', runDir());
  const draw = seedRandom(deriveSeed(seed, 1));
  const { readers } = await exercise({ fleet, journal, draw, limits, folder, reading });
  clients.readers.push(readers);
  await Promise.race([firstRace.promise, race]);
  log('the exercises are done');
}

const describeProgress = ({ calls, followers, mirrors, attempts, faults }: Journal): string => {
  const receipts = followers.reduce((sum, each) => sum + each.receipts.length, 0);
  const pages = mirrors.reduce((sum, each) => sum + each.pages, 0);
  return `${faults.length} faults, ${calls.length} calls, ${attempts.length} requests, ${receipts} bookmarks received, ${pages} pages mirrored`;
};
