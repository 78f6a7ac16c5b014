import postgres from 'postgres';
import { runOn } from './database.ts';
import { until } from './until.ts';

/** A lock in the database, held by a connection of its own. */
export interface Lock extends AsyncDisposable {
  /** What the statement changed is undone. */
  release(): Promise<void>;
  /** What the statement changed is kept. */
  commit(): Promise<void>;
}

/** Takes the locks of the statement and holds them until released. */
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

/** Takes the lock that every writer of the user's bookmarks takes first, as a large import does. */
export const holdAccount = (databaseUrl: string, user: { id: number }): Promise<Lock> =>
  holdLock(databaseUrl, `select from accounts where user_id = ${user.id} for no key update`);

/** Resolves with a backend of a statement with this text, once `count` of them wait for a lock. */
export const untilBlocked = (databaseUrl: string, text = '', count = 1): Promise<number> =>
  untilSession(databaseUrl, text, "wait_event_type = 'Lock'", count);

/** Resolves with the backend of a statement with this text, once one runs or waits. */
export const untilRunning = (databaseUrl: string, text: string): Promise<number> =>
  untilSession(databaseUrl, text, "state = 'active'");

/** Ends the sessions whose last statement holds this text. */
export async function killSessions(databaseUrl: string, text: string): Promise<void> {
  await runOn(databaseUrl, `select pg_terminate_backend(pid) ${sessionsWith(text)}`);
}

async function untilSession(
  databaseUrl: string,
  text: string,
  condition: string,
  count = 1,
): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    return await until(async () => {
      const rows = await sql.unsafe<{ pid: number }[]>(`select pid ${sessionsWith(text)} and ${condition}`);
      return rows.length >= count && rows[0]!.pid;
    });
  } finally {
    await sql.end({ timeout: 0 });
  }
}

const sessionsWith = (text: string): string =>
  `from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and position('${text}' in query) > 0`;
