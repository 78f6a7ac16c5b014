import postgres from 'postgres';
import { inject } from 'vitest';
import { findNodes } from './citus.ts';
import { runOn } from './run-on.ts';
import { until } from './until.ts';

/** A lock that a statement took in the database. A connection that does nothing else holds the lock. */
export interface Lock extends AsyncDisposable {
  /** Releases the lock and rolls back what the statement changed. */
  release(): Promise<void>;
  /** Releases the lock and commits what the statement changed. */
  commit(): Promise<void>;
}

/** Runs a statement in a transaction, and holds its locks until the test releases them. */
export async function holdLock(databaseUrl: string, statement: string): Promise<Lock> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  await sql.unsafe('begin');
  await sql.unsafe(statement);
  const end = async (how: 'commit' | 'rollback') => {
    await sql.unsafe(how).catch(() => {});
    await sql.end({ timeout: 0 });
  };
  const release = () => end('rollback');
  return { release, commit: () => end('commit'), [Symbol.asyncDispose]: release };
}

/** Takes the lock that every writer of the user's bookmarks, for example an import, takes first. */
export const holdAccount = (databaseUrl: string, user: { id: number }): Promise<Lock> =>
  holdLock(databaseUrl, `select from accounts where user_id = ${user.id} for no key update`);

/** A server process of Postgres that runs statements. On a sharded database it may be on any node. */
export interface Backend {
  pid: number;
  /** The url of the database on the process's node. */
  url: string;
  /** Ends the process, which rolls back its transaction. */
  end(): Promise<void>;
}

/** Returns the backends whose statement contains this text and is waiting for a lock. */
export async function findBlocked(databaseUrl: string, text: string): Promise<Backend[]> {
  await using servers = await openServers(databaseUrl);
  return await servers.find(text, BLOCKED);
}

/** Waits until `count` statements that contain this text wait for a lock. Resolves with the backend of one of them. */
export const untilBlocked = (databaseUrl: string, text = '', count = 1): Promise<Backend> =>
  untilSession(databaseUrl, text, BLOCKED, count);

/** Waits until a statement that contains this text runs or waits for a lock. Resolves with the statement's backend. */
export const untilRunning = (databaseUrl: string, text: string): Promise<Backend> =>
  untilSession(databaseUrl, text, "state = 'active'");

/** Ends the sessions whose latest statement contains this text. */
export async function killSessions(databaseUrl: string, text: string): Promise<void> {
  for (const url of await findServers(databaseUrl))
    await runOn(url, `select pg_terminate_backend(pid) ${sessionsWith(text)}`);
}

async function untilSession(
  databaseUrl: string,
  text: string,
  condition: string,
  count = 1,
): Promise<Backend> {
  await using servers = await openServers(databaseUrl);
  return await until(async () => {
    const backends = await servers.find(text, condition);
    return backends.length >= count && backends[0]!;
  });
}

/** Opens a connection to each server that runs statements of the database. */
async function openServers(databaseUrl: string) {
  const stack = new AsyncDisposableStack();
  const servers = (await findServers(databaseUrl)).map((url) => {
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    stack.defer(() => sql.end({ timeout: 0 }));
    return { url, sql };
  });
  const find = async (text: string, condition: string): Promise<Backend[]> => {
    const found = servers.map(async ({ url, sql }) => {
      const rows = await sql.unsafe<{ pid: number }[]>(`select pid ${sessionsWith(text)} and ${condition}`);
      return rows.map(({ pid }) => backendOf(url, pid));
    });
    return (await Promise.all(found)).flat();
  };
  return { find, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function findServers(databaseUrl: string): Promise<string[]> {
  if (inject('citusUrl') === undefined) return [databaseUrl];
  return (await findNodes(databaseUrl)).map(({ url }) => url);
}

const BLOCKED = "wait_event_type = 'Lock'";

const backendOf = (url: string, pid: number): Backend => ({
  pid,
  url,
  end: async () => void (await runOn(url, `select pg_terminate_backend(${pid})`)),
});

/**
 * Returns the SQL that finds the sessions with this text in their latest statement. A Citus coordinator rewrites
 * statements for its workers: in capitals, with the schema, and with the numbers of shards. So the comparison ignores
 * case, the schema and these numbers.
 */
const sessionsWith = (text: string): string =>
  `from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()
    and position(lower('${text}') in regexp_replace(lower(query), 'public\\.|_\\d{6,}\\M', '', 'g')) > 0`;
