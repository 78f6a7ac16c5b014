import type { Job, JobType } from 'bullmq';
import postgres from 'postgres';
import { inject } from 'vitest';
import type { ServingRole } from '../../src/process/serve.ts';
import { openDatabase } from '../../src/store/driver/open.ts';
import { nodesTemplate } from './citus.ts';
import { createDatabase } from './database.ts';
import { listJobs } from './import-jobs.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { type Replica, type ReplicaEnv, startReplica } from './replica.ts';
import { type Backend, findBlocked, holdAccount, holdLock, type Lock, untilBlocked } from './sessions.ts';
import { createPrincipal, type Principal, type UserOptions } from './users.ts';

/** Replicas that share a database and a Redis. No other fleet uses this Redis. */
export interface Fleet extends AsyncDisposable {
  readonly databaseUrl: string;
  /** A connection that reads the database directly. */
  readonly sql: postgres.Sql;
  readonly redis: RedisServer;
  /** The environment of all replicas. */
  readonly env: ReplicaEnv;
  start(role: ServingRole, env?: ReplicaEnv): Promise<Replica>;
  user(options?: UserOptions): Promise<Principal>;
  /** Returns the urls of a user's bookmarks, in the order of the bookmarks' ids. */
  urls(user: Principal): Promise<string[]>;
  /** Returns the states of a user's imports, oldest first. */
  imports(user: Principal): Promise<string[]>;
  /** Runs a statement in a transaction, and holds its locks until the test releases them. */
  hold(statement: string): Promise<Lock>;
  /** Takes the lock that every writer of the user's bookmarks takes first. */
  holdAccount(user: Principal): Promise<Lock>;
  /** Waits until a statement that contains this text waits for a lock. Resolves with the statement's backend. */
  untilBlocked(text: string): Promise<Backend>;
  /** Returns the backends of statements that contain this text and wait for a lock now. */
  blocked(text: string): Promise<Backend[]>;
  /** Returns the import jobs in these states. By default, those that are waiting or running. */
  jobs(...states: JobType[]): Promise<Job[]>;
}

/** Options of a fleet. Without a database url, the fleet gets an empty database. */
export interface FleetOptions {
  databaseUrl?: string;
  env?: ReplicaEnv;
}

/** Opens a fleet, at first without replicas. Closing the fleet kills the replicas that it has started. */
export async function openFleet({ databaseUrl, env = {} }: FleetOptions = {}): Promise<Fleet> {
  await using opened = new AsyncDisposableStack();
  const own = databaseUrl === undefined ? opened.use(await createDatabase()) : undefined;
  const url = databaseUrl ?? own!.url;
  const redis = opened.use(await startRedis());
  const sql = postgres(url, { max: 3, onnotice: () => {}, backoff: () => 0.05 });
  opened.defer(() => sql.end({ timeout: 0 }));
  const database = await openDatabase({ url, max: 1 });
  opened.defer(() => database.close(0));
  const replicas = opened.use(new AsyncDisposableStack());
  const nodes = inject('citusUrl') === undefined ? {} : { DATABASE_NODES: nodesTemplate(url) };
  const common = { DATABASE_URL: url, ...nodes, REDIS_URL: redis.url, ...env };
  const closing = opened.move();
  return {
    databaseUrl: url,
    sql,
    redis,
    env: common,
    start: async (role, more = {}) => replicas.use(await startReplica(role, { ...common, ...more })),
    user: (options) => createPrincipal(database, options),
    urls: async ({ id }) =>
      (await sql<{ url: string }[]>`select url from bookmarks where user_id = ${id} order by id`).map(
        ({ url }) => url,
      ),
    imports: async ({ id }) =>
      (
        await sql<{ state: string }[]>`select state from imports where user_id = ${id} order by created_at`
      ).map(({ state }) => state),
    hold: (statement) => holdLock(url, statement),
    holdAccount: (user) => holdAccount(url, user),
    untilBlocked: (text) => untilBlocked(url, text),
    blocked: (text) => findBlocked(url, text),
    jobs: (...states) =>
      listJobs(redis.url, 'bookmarks', states.length === 0 ? ['waiting', 'active'] : states),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
