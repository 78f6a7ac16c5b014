import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, inject } from 'vitest';
import { issueInvite } from '../../src/admin/invites.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { type Context, openContext } from '../../src/context.ts';
import type { Scope } from '../../src/domain/tokens.ts';
import type { Logger } from '../../src/observability/log.ts';
import { buildApp } from '../../src/routes/app.ts';
import { DatabaseUnavailable } from '../../src/store/driver/errors.ts';
import { nodesTemplate } from './citus.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { post, type RequestOptions } from './post.ts';
import type { ApiResponse } from './responses.ts';
import { silentLog } from './silent-log.ts';
import { createPrincipal, issueToken, newEmail, type Principal, type UserOptions } from './users.ts';

/** The default configuration, except for the port, the log, `migrateWaitSeconds`, and limits that most tests hit. */
const TEST_CONFIG: Config = {
  ...readConfig({}),
  port: 0,
  logLevel: 'silent',
  rateLimitRequests: 100_000,
  rateLimitRequestsPremium: 100_000,
  inviteFailuresPerMinute: 100_000,
  overloadEventLoopMs: 0,
  overloadPoolWaitMs: 0,
  migrateWaitSeconds: 0,
};

/** A user with a token, who sends requests. */
export interface TestUser extends Principal {
  post(path: string, body?: unknown, options?: RequestInit): Promise<ApiResponse>;
}

/** A replica in this process, with its own port. It may share its database with another replica. */
export interface TestService extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly context: Context;
  readonly database: TestDatabase;
  /** `http://127.0.0.1:port` */
  readonly origin: string;
  /** Sends a request by means of `post.ts`. */
  post(path: string, body: unknown, options?: RequestOptions): Promise<ApiResponse>;
  /** Creates a user with an API token. */
  user(options?: UserOptions): Promise<TestUser>;
  /** Issues an API token to an existing user. */
  token(userId: number, scope: Scope): Promise<string>;
  invite(email: string, days?: number): Promise<string>;
  /** Creates a user with a session token, through an invite. */
  session(email?: string): Promise<TestUser>;
}

export interface ServiceOptions {
  /** The database of another replica, which must outlive the new one. Default: a new, empty database. */
  database?: TestDatabase;
  log?: Logger;
}

/**
 * Starts a replica before the first test of a file or `describe` block, and ends it after the last. The result gets its
 * fields when the replica has started. `beside` is a service whose database the replica shares.
 */
export function useService(
  config: Partial<Config> = {},
  { beside }: { beside?: TestService } = {},
): TestService {
  const service = {} as TestService;
  beforeAll(async () => {
    Object.assign(service, await startService(config, beside && { database: beside.database }));
  });
  afterAll(() => service[Symbol.asyncDispose]?.());
  return service;
}

/**
 * Creates a user with a token for all tests of a file or `describe` block. The result gets its fields before the first
 * test.
 */
export function useUser(service: TestService, options: UserOptions = {}): TestUser {
  const user = {} as TestUser;
  beforeAll(async () => {
    Object.assign(user, await service.user(options));
  });
  return user;
}

/** Opens a context. Tries again if connections are not made in time, because the machine may be busy. */
async function connectContext(config: Config, log: Logger, databaseUrl: string): Promise<Context> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openContext(config, log, databaseUrl);
    } catch (error) {
      const isLate = error instanceof DatabaseUnavailable && error.code === 'CONNECT_TIMEOUT';
      if (!isLate || tries === 10) throw error;
    }
  }
}

/** Starts a replica for one test: `await using service = await startService()`. */
export async function startService(
  config: Partial<Config> = {},
  { database, log = silentLog as Logger }: ServiceOptions = {},
): Promise<TestService> {
  const own = database ?? (await createDatabase());
  const isPlaced = inject('citusUrl') !== undefined && !('databaseNodes' in config);
  const placement = isPlaced ? { databaseNodes: nodesTemplate(own.url) } : {};
  const whole: Config = { ...TEST_CONFIG, databaseUrl: own.url, ...placement, ...config };
  const context = await connectContext(whole, log, own.url);
  const app = await buildApp(context);
  await app.listen({ host: whole.host, port: 0 });
  const origin = app.listeningOrigin;

  const send: TestService['post'] = (path, body, options) => post(origin, path, body, options);
  const sendAs = (principal: Principal): TestUser => ({
    ...principal,
    post: (path, body, options) => send(path, body, { ...options, token: principal.token }),
  });

  return {
    app,
    context,
    database: own,
    origin,
    post: send,
    token: (userId, scope) => issueToken(context.database, userId, scope),
    invite: async (email, days = 7) => (await issueInvite(context.database, email, days)).code,
    user: async (options) => sendAs(await createPrincipal(context.database, options)),
    async session(email = newEmail()) {
      const { code } = await issueInvite(context.database, email, 7);
      const { body } = await send('/auth/invite', { code });
      return sendAs({ ...body.user, token: body.token });
    },
    async [Symbol.asyncDispose]() {
      context.lifecycle.draining = true;
      context.coordination.notifier.drain(0);
      await app.close();
      await context.close();
      if (database === undefined) await own.drop();
    },
  };
}
