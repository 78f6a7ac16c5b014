import { setTimeout as sleep } from 'node:timers/promises';
import { BookmarkClient } from '../../src/client/index.ts';
import { scrape } from '../support/replica.ts';
import { runOn } from '../support/run-on.ts';
import { beginCall, settleCall } from './calls.ts';
import { MINIMUMS } from './checks/minimums.ts';
import type { Fleet } from './fleet.ts';
import { follow } from './follow.ts';
import { type Asked, type Journal, type Limits, nowMs } from './journal.ts';
import { mirror } from './mirror.ts';
import type { Random } from './random.ts';
import { recordFetch } from './recorded-fetch.ts';
import type { ServiceProcess } from './service-process.ts';
import { LASTING_TAGS } from './users.ts';

/**
 * Produces the events that every run must contain, whatever the seed and the machine's speed. Each exercise produces
 * one kind of event with its own users, before the first fault. `checks/minimums.ts` says how many events are needed.
 */

export interface ExerciseOptions {
  fleet: Fleet;
  journal: Journal;
  draw: Random;
  limits: Limits;
  /** The folder for the mirrors' files. */
  folder: string;
  /** Ends the followers and the mirror. */
  reading: AbortSignal;
}

/** Runs all exercises. `readers` resolves when the followers and the mirror have ended. */
export async function exercise(options: ExerciseOptions): Promise<{ readers: Promise<unknown> }> {
  const { readers } = await wakePolls(options);
  await Promise.all([collideEdits(options), exhaustLimit(options)]);
  await Promise.all([killServerOfAdd(options), killRunnerOfImport(options)]);
  return { readers };
}

const FOLLOWERS = 4;
const WAKES = 12;

/** How long an exercise waits for an event. After this time the run continues, and its table may say "not shown". */
const PATIENCE_MS = 30_000;

const makeAsked = (name: string): Asked => ({
  url: `https://chaos.example/exercise/${name}`,
  title: `exercise ${name}`,
  comment: '',
  tags: [LASTING_TAGS[0]!],
});

/** Adds bookmarks one by one. Before each add, waits until all followers and the mirror of the user hold a poll. */
async function wakePolls(options: ExerciseOptions): Promise<{ readers: Promise<unknown> }> {
  const { fleet, journal, draw, folder, reading } = options;
  const { origin } = fleet.balancer;
  const { id: user, tokens } = await fleet.user(FOLLOWERS + 2);
  const [writer, mirroring, ...following] = tokens as [string, string, ...string[]];
  const parts = { user, origin, journal, draw };
  const readers = [
    mirror({ ...parts, name: `mirror ${user}-1`, token: mirroring, store: 'memory', folder }, reading),
    ...following.map((token, n) => follow({ ...parts, name: `follower ${user}-${n + 1}`, token }, reading)),
  ];
  for (let n = 1; n <= WAKES; n += 1) {
    await untilPolling(journal, [mirroring, ...following]);
    if (n === 1) journal.heldPolls = await untilHeld(fleet);
    await add(options, user, writer, makeAsked(`wake-${n}`));
  }
  return { readers: Promise.all(readers) };
}

/** Resolves when there is an open poll with each of these tokens, at the latest after `PATIENCE_MS`. */
async function untilPolling({ attempts }: Journal, tokens: readonly string[]): Promise<void> {
  const giveUpAt = nowMs() + PATIENCE_MS;
  const isPolling = (token: string) =>
    attempts.findLast((attempt) => attempt.token === token)?.endMs === Number.POSITIVE_INFINITY;
  while (!tokens.every(isPolling) && nowMs() < giveUpAt) await sleep(20);
  // The journal records a poll when its client sends it. The service receives the poll a moment later.
  await sleep(100);
}

/**
 * Returns the number of polls that the processes hold, once there are enough for the check of point `rested`, at the
 * latest after `PATIENCE_MS`. Before they hold a poll, they read the database, which may take seconds on a busy machine.
 */
async function untilHeld(fleet: Fleet): Promise<number> {
  const giveUpAt = nowMs() + PATIENCE_MS;
  for (;;) {
    const held = await countHeld(fleet);
    if (held >= MINIMUMS.rested['polls held before']! || nowMs() >= giveUpAt) return held;
    await sleep(100);
  }
}

async function countHeld({ processes }: Fleet): Promise<number> {
  const held = processes.map(async ({ metricsPort }) => (await scrape(metricsPort)).get('bookmarks_waiters'));
  return (await Promise.all(held)).reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** Adds a bookmark, with retries. Returns the bookmark's id and version if the add was acknowledged. */
async function add(
  { fleet, journal }: ExerciseOptions,
  user: number,
  token: string,
  asked: Asked,
  send: typeof fetch = fetch,
): Promise<{ id: number; updated_at: string } | undefined> {
  const { recorded, client } = connect(fleet, journal, token, send);
  const call = beginCall(journal, user, {
    ...{ kind: 'add', ...asked, isKeyed: true, id: undefined as number | undefined },
  });
  let added: { id: number; updated_at: string } | undefined;
  await settleCall(recorded, call, async () => {
    added = await client.addBookmark(asked);
    call.id = added.id;
  });
  return added;
}

function connect({ balancer }: Fleet, journal: Journal, token: string, send: typeof fetch = fetch) {
  const recorded = recordFetch(journal, token, send);
  const client = new BookmarkClient({
    baseUrl: `${balancer.origin}/api/v1`,
    token,
    fetch: recorded.fetch,
    retryForMs: 60_000,
  });
  return { recorded, client };
}

const COLLISIONS = 15;

/** Makes two clients read the same version and edit it at the same time. One of them must get a conflict. */
async function collideEdits(options: ExerciseOptions): Promise<void> {
  const { fleet, journal } = options;
  const { id: user, tokens } = await fleet.user(2);
  const added = await add(options, user, tokens[0]!, makeAsked('collision'));
  let version = added?.updated_at;
  for (let n = 1; n <= COLLISIONS && version !== undefined; n += 1) {
    const seen: string = version;
    const edit = async (token: string, side: number) => {
      const { recorded, client } = connect(fleet, journal, token);
      const title = `collision ${n} of ${side}`;
      const call = beginCall(journal, user, {
        ...{ kind: 'edit', id: added!.id, title, comment: undefined, tags: undefined, seen },
        version: undefined as string | undefined,
      });
      await settleCall(recorded, call, async () => {
        const edited = await client.editBookmark({ id: added!.id, title, if_updated_at: seen });
        call.version = edited.updated_at;
      });
      return call.version;
    };
    const versions = await Promise.all(tokens.map(edit));
    version = versions.find((each) => each !== undefined);
  }
}

const BURSTS = 3;

/** For each of several new tokens, sends three times as many simultaneous requests as the token's limit admits. */
async function exhaustLimit({ fleet, journal, limits }: ExerciseOptions): Promise<void> {
  const { tokens } = await fleet.user(BURSTS);
  for (const token of tokens) {
    const recorded = recordFetch(journal, token);
    const send = async () => {
      const response = await recorded.fetch(`${fleet.balancer.origin}/api/v1/user/profile`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: '{}',
        signal: AbortSignal.timeout(30_000),
      });
      await response.arrayBuffer();
    };
    await Promise.allSettled(Array.from({ length: 3 * limits.requests }, send));
  }
}

/** Drops the response to an add and kills the replica that sent the response, so that the client repeats the add. */
async function killServerOfAdd(options: ExerciseOptions): Promise<void> {
  const { fleet, journal } = options;
  const { id: user, tokens } = await fleet.user(1);
  let restarted: Promise<void> | undefined;
  const loseFirst: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (restarted !== undefined || !response.ok) return response;
    const server = fleet.processes.find(({ name }) => name === response.headers.get('x-served-by'))!;
    restarted = killAndRestart(journal, [server]);
    throw new TypeError('the response is lost');
  };
  await add(options, user, tokens[0]!, makeAsked('repeated'), loseFirst);
  await restarted;
}

async function killAndRestart(
  journal: Journal,
  processes: readonly ServiceProcess[],
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const faults = processes.map(({ name: target }) => {
    const fault = { kind: 'SIGKILL', target, startMs: nowMs(), endMs: Number.POSITIVE_INFINITY };
    journal.faults.push(fault);
    return fault;
  });
  await Promise.all(processes.map((each) => each.end('SIGKILL')));
  await meanwhile();
  await Promise.all(processes.map((each) => each.start()));
  for (const fault of faults) fault.endMs = nowMs();
}

/** An import with this many entries is too large to run within its request, so a worker runs it. */
const ENTRIES = 60;

/**
 * Kills the workers while one of them runs an import. The exercise holds the account's lock, so that no import can
 * finish before the kill. Afterwards it ends the statement that still waits for the lock. A worker must run the import
 * again.
 */
async function killRunnerOfImport({ fleet, journal }: ExerciseOptions): Promise<void> {
  const { id: user, tokens } = await fleet.user(1);
  const { recorded, client } = connect(fleet, journal, tokens[0]!);
  const entries = Array.from({ length: ENTRIES }, (_, n) => makeAsked(`import-${n + 1}`));
  const call = beginCall(journal, user, {
    ...{ kind: 'import', mode: 'merge', entries, invalid: 0, repeated: [], crashes: 0 },
    result: undefined as { imported: number; skipped: number; errors: number } | undefined,
  });
  const runners = fleet.processes.filter(({ role }) => role !== 'api');
  let imported: Promise<void> | undefined;
  await fleet.sql.begin(async (sql) => {
    await sql`select from accounts where user_id = ${user} for no key update`;
    imported = settleCall(recorded, call, async () => {
      const { imported, skipped, errors } = await client.importBookmarks({ bookmarks: entries });
      call.result = { imported, skipped, errors: errors.length };
    });
    if (!(await untilBegun(fleet, user))) return;
    await killAndRestart(journal, runners, async () => {
      for (const url of fleet.database.urls) await runOn(url, END_BLOCKED);
    });
    call.crashes = 1;
  });
  await imported;
}

const END_BLOCKED = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'
    and (application_name like 'bookmark-service%' or application_name like 'citus_internal%')`;

/** Resolves with true when a worker has started the user's import, or with false if none does in time. */
async function untilBegun({ sql }: Fleet, user: number): Promise<boolean> {
  for (const giveUpAt = nowMs() + PATIENCE_MS; nowMs() < giveUpAt; await sleep(50)) {
    const begun =
      await sql`select from imports where user_id = ${user} and state = 'queued' and attempts = 1`;
    if (begun.length > 0) return true;
  }
  return false;
}
