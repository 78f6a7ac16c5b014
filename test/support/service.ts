import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll } from 'vitest';
import { issueInvite } from '../../src/admin/invites.ts';
import type { Config } from '../../src/config.ts';
import { type Context, openContext } from '../../src/context.ts';
import { foldText } from '../../src/domain/text.ts';
import { createSecret, formatToken, type Scope } from '../../src/domain/tokens.ts';
import { buildApp } from '../../src/http/app.ts';
import type { Logger } from '../../src/process/log.ts';
import { createApiToken, createUser } from '../../src/store/admin.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { type ApiResponse, checkResponse, readResponse } from './responses.ts';
import { silentLog } from './silent-log.ts';

/** Every variable at its default, but for what would make tests trip over limits that they are not about. */
export const TEST_CONFIG: Omit<Config, 'databaseUrl'> = {
  production: false,
  host: '127.0.0.1',
  port: 0,
  logLevel: 'silent',
  dataDir: '.data',
  databaseImportUrl: undefined,
  databasePoolSize: 10,
  databaseImportPoolSize: 2,
  databasePrepare: true,
  redisUrls: undefined,
  redisCa: undefined,
  redisPrefix: 'bookmarks',
  rateLimitRequests: 100_000,
  rateLimitWindowSeconds: 60,
  syncWaitSeconds: 29,
  maxWaiters: 12_000,
  freeBookmarkLimit: 10_000,
  importInlineBytes: 1_048_576,
  importWaitSeconds: 120,
  importConcurrency: 2,
  importStagedBytes: 4_294_967_296,
  sessionDays: 90,
  corsOrigins: [],
  trustProxy: false,
  requestTimeoutSeconds: 120,
  drainSeconds: 0,
  overloadEventLoopMs: 0,
  overloadPoolWaitMs: 0,
  metricsPort: undefined,
  otlpEndpoint: undefined,
  traceRatio: 1,
};

/** A write token of a free account with a new address, unless said otherwise. */
export interface UserOptions {
  scope?: Scope;
  premium?: boolean;
  email?: string;
}

/** Somebody with a token. */
export interface TestUser {
  id: number;
  email: string;
  token: string;
  /** Sends a request with the token; the body is serialised. */
  post(path: string, body?: unknown, options?: RequestInit): Promise<ApiResponse>;
}

/** A replica in this process, on a port of its own, over a database of its own. */
export interface TestService extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly context: Context;
  readonly database: TestDatabase;
  /** `http://127.0.0.1:port` */
  readonly origin: string;
  /**
   * Sends a request; `path` is appended to `/api/v1`, text and bytes go as they stand. Every answer is checked against what
   * all answers promise.
   */
  post(path: string, body: unknown, options?: RequestInit & { token?: string }): Promise<ApiResponse>;
  /** Makes a user with an API token. */
  user(options?: UserOptions): Promise<TestUser>;
  /** Issues one more API token to a user. */
  token(userId: number, scope: Scope): Promise<string>;
  invite(email: string, days?: number): Promise<string>;
  /** Makes a user with a session token, by an invite. */
  session(email?: string): Promise<TestUser>;
}

let users = 0;

const newEmail = () => `user-${++users}-${process.pid}@example.org`;

export interface ServiceOptions {
  /** Another replica's database, which outlives this one; an empty one of its own when absent. */
  database?: TestDatabase;
  log?: Logger;
}

/**
 * A replica for all tests of a file or `describe` block: it starts before the first of them and ends after the last. Its
 * fields are there from then on. `beside` is a service whose database it shares.
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

/** A user of a service for all tests of a file or `describe` block, with a token. Its fields are there when they run. */
export function useUser(service: TestService, options: UserOptions = {}): TestUser {
  const user = {} as TestUser;
  beforeAll(async () => {
    Object.assign(user, await service.user(options));
  });
  return user;
}

/** Starts a replica for one test: `await using service = await startService()`. */
export async function startService(
  config: Partial<Config> = {},
  { database, log = silentLog as Logger }: ServiceOptions = {},
): Promise<TestService> {
  const own = database ?? (await createDatabase());
  const whole: Config = { ...TEST_CONFIG, databaseUrl: own.url, ...config };
  const context = await openContext(whole, log, own.url);
  const app = await buildApp(context);
  await app.listen({ host: whole.host, port: 0 });
  const origin = app.listeningOrigin;

  const post: TestService['post'] = async (path, body, { token, ...options } = {}) => {
    const response = await fetch(`${origin}/api/v1${path}`, {
      method: 'POST',
      body:
        body instanceof Uint8Array || typeof body === 'string'
          ? (body as BodyInit)
          : JSON.stringify(body ?? {}),
      ...options,
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(options.headers as Record<string, string>),
      },
    });
    const answer = await readResponse(response);
    checkResponse(path, answer);
    return answer;
  };

  const userOf = (id: number, email: string, token: string): TestUser => ({
    id,
    email,
    token,
    post: (path, body, options) => post(path, body, { ...options, token }),
  });

  const issueToken = async (userId: number, scope: Scope) => {
    const { secret, hash } = createSecret();
    await createApiToken(context.database, userId, hash, { scope, name: '', days: null });
    return formatToken('api', userId, secret);
  };

  return {
    app,
    context,
    database: own,
    origin,
    post,
    token: issueToken,
    invite: async (email, days = 7) => (await issueInvite(context.database, email, days)).code,
    async user({ scope = 'write', premium = false, email = newEmail() } = {}) {
      const made = await createUser(context.database, email, foldText(email), premium);
      return userOf(made!.id, email, await issueToken(made!.id, scope));
    },
    async session(email = newEmail()) {
      const { code } = await issueInvite(context.database, email, 7);
      const { body } = await post('/auth/invite', { code });
      return userOf(body.user.id, body.user.email, body.token);
    },
    async [Symbol.asyncDispose]() {
      context.lifecycle.draining = true;
      context.coordination.wakes.drain(0);
      await app.close();
      await context.close();
      if (database === undefined) await own.drop();
    },
  };
}
