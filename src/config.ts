import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { parseRedisAddress, type RedisAddress } from './coordination/redis-address.ts';
import { findContradiction, SIGN_IN_SCHEMAS, type SignInSettings, toSettings } from './sign-in/variables.ts';
import { findUrlFault } from './store/database-url.ts';

/** The configuration of a process: typed, checked and complete. Tests write it as a literal. */
export interface Config {
  production: boolean;
  host: string;
  port: number;
  logLevel: string;
  /** Absent: the service starts an embedded Postgres in `dataDir`. */
  databaseUrl: string | undefined;
  dataDir: string;
  /** For imports, whose statements take longer than a pooler allows others; absent: `databaseUrl`. */
  databaseImportUrl: string | undefined;
  databasePoolSize: number;
  databaseImportPoolSize: number;
  databasePrepare: boolean;
  /** Whether `migrate` distributes the tables over the nodes of a Citus cluster; one that it has distributed stays so. */
  databaseSharding: 'citus' | undefined;
  /** Where Redis is; absent: there is one replica, coordinated in its process. */
  redisAddress: RedisAddress | undefined;
  /** PEM text of the authority that signed Redis' certificates; absent: the authorities that Node knows. */
  redisCa: string | undefined;
  /** For the Sentinels themselves. */
  redisSentinelPassword: string | undefined;
  redisPrefix: string;
  rateLimitRequests: number;
  rateLimitRequestsPremium: number;
  rateLimitWindowSeconds: number;
  /** Wrong invite codes of all clients that name no e-mail address, in any 60 s. */
  inviteFailuresPerMinute: number;
  syncWaitSeconds: number;
  maxWaiters: number;
  freeBookmarkLimit: number;
  importInlineBytes: number;
  importWaitSeconds: number;
  importConcurrency: number;
  importStagedBytes: number;
  sessionDays: number;
  /** How long edits and deletions are kept for `/bookmarks/changes`. */
  changesDays: number;
  corsOrigins: readonly string[];
  /** How people sign in beside invites. */
  signIn: SignInSettings;
  /**
   * The origin at which people see the service: `https`, or `http` on loopback. Absent: a service that listens on
   * loopback takes its own; another one has no pages, and no sessions of browsers.
   */
  publicUrl: string | undefined;
  /** The proxies whose `X-Forwarded-For` is believed: their number, or their networks; `false`: none. */
  trustProxy: number | string[] | false;
  requestTimeoutSeconds: number;
  /** Whether responses are compressed for clients that accept it. */
  compress: boolean;
  drainSeconds: number;
  /**
   * Requests are refused while the mean delay of the event loop, or the longest wait for a connection, is above this;
   * 0: never.
   */
  overloadEventLoopMs: number;
  overloadPoolWaitMs: number;
  /** How long `migrate` tries again while Postgres cannot be reached, or a table is in use. */
  migrateWaitSeconds: number;
  /** Bytes of responses that clients have not taken, of all users, beyond which requests are refused. */
  unsentBytes: number;
  /** How long a client may take nothing of its response before its connection is cut. */
  responseStallSeconds: number;
  /** Absent: no metrics. */
  metricsPort: number | undefined;
  /** Collector of traces; absent: none. */
  otlpEndpoint: string | undefined;
  traceRatio: number;
  /** What names this process to the collector, beside the service and its role. */
  traceResource: Readonly<Record<string, string>>;
}

/** A variable of the environment cannot be used. The message names it, the fault and an example. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

function wholeNumber(min: number, max: number) {
  const rule = `expected an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, rule)
    .transform(Number)
    .pipe(z.number().min(min, rule).max(max, rule));
}

const integer = (min: number, max: number, byDefault: number) =>
  wholeNumber(min, max)
    .default(byDefault)
    .meta({ example: String(byDefault) });

const port = wholeNumber(0, 65_535);

// A Postgres url may name several hosts, which WHATWG's parser does not accept.
const databaseUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\/./, {
    error: 'expected a url that begins with postgres:// or postgresql://',
    abort: true,
  })
  .check(({ value, issues }) => {
    const fault = findUrlFault(value);
    if (fault !== undefined) issues.push({ code: 'custom', message: fault, input: value });
  })
  .optional()
  .meta({ example: 'postgres://user:password@localhost:5432/bookmarks', secret: true });

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && text === `${url.protocol}//${url.host}`;
};

/** Whether only this machine can reach a host name or an address. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(host);

/** On plain HTTP a browser's session could be read on the way, and a `Secure` cookie would not be sent at all. */
function isSafeOrigin(text: string): boolean {
  if (!isOrigin(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

const isNetwork = (text: string): boolean => {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
};

const trustProxy = z
  .string()
  .transform((text): number | string[] | false => {
    if (text === '0' || text === 'false') return false;
    return /^\d{1,2}$/.test(text) ? Number(text) : splitList(text);
  })
  .refine((value) => !Array.isArray(value) || (value.length > 0 && value.every(isNetwork)), {
    error: 'expected a number of proxies or a list of their networks; everyone cannot be trusted',
  })
  .default(false)
  .meta({ example: '10.0.0.0/8' });

const redisAddress = z
  .string()
  .transform((text, ctx): RedisAddress => {
    const address = parseRedisAddress(text);
    if (address !== undefined) return address;
    ctx.issues.push({
      code: 'custom',
      message:
        'expected redis:// or rediss:// and a host, a port or the number of a database, one url or several separated ' +
        'by commas, or redis+sentinel://host:26379,host:26379/name; what is special in a password is written as %40',
      input: text,
    });
    return z.NEVER;
  })
  .optional()
  .meta({ example: 'redis://localhost:6379', secret: true });

const caFile = z
  .string()
  .transform((path, ctx) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      ctx.issues.push({ code: 'custom', message: 'expected a file that can be read', input: path });
      return z.NEVER;
    }
  })
  .optional()
  .meta({ example: '/etc/redis/ca.pem' });

/** `key=value` by commas, percent-encoded as OpenTelemetry's specification has it. */
const resourceAttributes = z
  .string()
  .transform((text, ctx): Record<string, string> => {
    const pairs = splitList(text).map((pair) => /^([^=]+)=(.*)$/.exec(pair));
    try {
      return Object.fromEntries(
        pairs.map((pair) => [pair![1]!.trim(), decodeURIComponent(pair![2]!.trim())]),
      );
    } catch {
      ctx.issues.push({ code: 'custom', message: 'expected key=value, separated by commas', input: text });
      return z.NEVER;
    }
  })
  .default({})
  .meta({ example: 'service.instance.id=api-1,deployment.environment.name=production' });

/** A schema for each variable. docs/configuration.md describes the variables. */
const SCHEMAS = {
  NODE_ENV: z.string().default('development').meta({ example: 'production' }),
  HOST: z.string().default('127.0.0.1').meta({ example: '0.0.0.0' }),
  PORT: integer(0, 65_535, 3_000),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, `expected one of ${LOG_LEVELS.join(', ')}`)
    .default('info')
    .meta({ example: 'info' }),
  DATABASE_URL: databaseUrl,
  DATABASE_IMPORT_URL: databaseUrl,
  DATA_DIR: z.string().default('.data').meta({ example: '.data' }),
  DATABASE_POOL_SIZE: integer(1, 1_000, 10),
  DATABASE_IMPORT_POOL_SIZE: integer(1, 100, 2),
  DATABASE_PREPARE: z
    .enum(['true', 'false'], 'expected true or false')
    .transform((text) => text === 'true')
    .default(true)
    .meta({ example: 'true' }),
  DATABASE_SHARDING: z
    .enum(['none', 'citus'], 'expected none or citus')
    .default('none')
    .transform((text) => (text === 'none' ? undefined : text))
    .meta({ example: 'citus' }),
  REDIS_URL: redisAddress,
  REDIS_CA_FILE: caFile,
  REDIS_SENTINEL_PASSWORD: z.string().optional().meta({ secret: true }),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, dots, hyphens and underscores')
    .default('bookmarks')
    .meta({ example: 'bookmarks' }),
  RATE_LIMIT_REQUESTS: integer(1, 100_000, 100),
  RATE_LIMIT_REQUESTS_PREMIUM: wholeNumber(1, 100_000).optional().meta({ example: '500' }),
  RATE_LIMIT_WINDOW_SECONDS: integer(1, 3_600, 60),
  INVITE_FAILURES_PER_MINUTE: integer(1, 1_000_000, 600),
  SYNC_WAIT_SECONDS: integer(1, 30, 29),
  MAX_WAITERS: integer(1, 1_000_000, 12_000),
  FREE_BOOKMARK_LIMIT: integer(0, 1_000_000_000, 10_000),
  IMPORT_INLINE_BYTES: integer(0, 67_108_864, 1_048_576),
  IMPORT_WAIT_SECONDS: integer(1, 3_600, 120),
  IMPORT_CONCURRENCY: integer(1, 64, 2),
  IMPORT_STAGED_BYTES: integer(1, 1_099_511_627_776, 4_294_967_296),
  SESSION_DAYS: integer(1, 3_650, 90),
  CHANGES_DAYS: integer(1, 3_650, 90),
  CORS_ORIGINS: z
    .string()
    .transform(splitList)
    .refine((origins) => origins.every(isOrigin), 'expected origins separated by commas')
    .default([])
    .meta({ example: 'https://app.example.org,chrome-extension://abcdefghijklmnop' }),
  PUBLIC_URL: z
    .string()
    .refine(isSafeOrigin, 'expected an origin: https:// and a host, without a path; http:// on loopback only')
    .optional()
    .meta({ example: 'https://bookmarks.example.org', secret: true }),
  TRUST_PROXY: trustProxy,
  REQUEST_TIMEOUT_SECONDS: integer(1, 3_600, 120),
  COMPRESS: z
    .enum(['on', 'off'], 'expected on or off')
    .default('on')
    .transform((value) => value === 'on')
    .meta({ example: 'off' }),
  DRAIN_SECONDS: integer(0, 60, 0),
  OVERLOAD_EVENT_LOOP_MS: integer(0, 60_000, 500),
  OVERLOAD_POOL_WAIT_MS: integer(0, 60_000, 2_000),
  MIGRATE_WAIT_SECONDS: integer(0, 3_600, 60),
  UNSENT_BYTES: integer(1_048_576, 1_099_511_627_776, 268_435_456),
  RESPONSE_STALL_SECONDS: integer(1, 3_600, 30),
  METRICS_PORT: port.optional().meta({ example: '9464' }),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .regex(/^https?:\/\/./, 'expected an http or https url')
    .optional()
    .meta({ example: 'http://localhost:4318' }),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'expected a number from 0 to 1')
    .transform(Number)
    .default(1)
    .meta({ example: '0.01' }),
  OTEL_RESOURCE_ATTRIBUTES: resourceAttributes,
  ...SIGN_IN_SCHEMAS,
};

type Schemas = typeof SCHEMAS;

function readVariable<N extends keyof Schemas>(name: N, text: string | undefined): z.output<Schemas[N]> {
  const schema: z.ZodType = SCHEMAS[name];
  const result = schema.safeParse(text?.trim() || undefined);
  if (result.success) return result.data as z.output<Schemas[N]>;
  const meta = schema.meta() ?? {};
  const got = meta.secret ? '' : `, got "${text}"`;
  const rule = result.error.issues[0]!.message;
  throw new ConfigError(`${name}: ${rule}${got}; for example ${name}=${String(meta.example)}`);
}

/** The text that an example is given in. */
const exampleOf = (name: keyof Schemas): string => `${name}=${String(SCHEMAS[name].meta()?.example)}`;

/** Reads the variables of signing in; refuses those that mean nothing, or something dangerous, together. */
function readSignIn(read: <N extends keyof Schemas>(name: N) => z.output<Schemas[N]>): SignInSettings {
  const values = {
    OIDC_ISSUER: read('OIDC_ISSUER'),
    OIDC_CLIENT_ID: read('OIDC_CLIENT_ID'),
    OIDC_CLIENT_SECRET: read('OIDC_CLIENT_SECRET'),
    OIDC_CLIENT_SECRET_FILE: read('OIDC_CLIENT_SECRET_FILE'),
    OIDC_SCOPES: read('OIDC_SCOPES'),
    OIDC_NAME: read('OIDC_NAME'),
    OIDC_TRUST_EMAIL: read('OIDC_TRUST_EMAIL'),
    OIDC_ALLOWED_DOMAINS: read('OIDC_ALLOWED_DOMAINS'),
    SIGN_UP: read('SIGN_UP'),
    APP_REDIRECTS: read('APP_REDIRECTS'),
  };
  const found = findContradiction(values);
  if (found !== undefined)
    throw new ConfigError(`${found.name}: ${found.rule}; for example ${exampleOf(found.name)}`);
  return toSettings(values);
}

function refuseIncomplete(config: Config): void {
  const missing = [
    ...(config.databaseUrl === undefined ? ['DATABASE_URL'] : []),
    ...(config.redisAddress === undefined ? ['REDIS_URL'] : []),
  ];
  if (!config.production || missing.length === 0) return;
  throw new ConfigError(
    `${missing.join(' and ')}: required when NODE_ENV=production; for example ${missing
      .map((name) => exampleOf(name as keyof Schemas))
      .join(' ')}`,
  );
}

/** The provider sends people back to where they see the service, which no request may say. */
function refuseUnreachable({ signIn, publicUrl, host }: Config): void {
  if (signIn.provider === undefined || publicUrl !== undefined || isLoopback(host)) return;
  throw new ConfigError(
    `PUBLIC_URL: required where OIDC_ISSUER is set; for example ${exampleOf('PUBLIC_URL')}`,
  );
}

/** Reads and checks the environment; throws a `ConfigError` for the first variable that cannot be used. */
export function readConfig(env: Environment = process.env): Config {
  const read = <N extends keyof Schemas>(name: N) => readVariable(name, env[name]);
  const config: Config = {
    production: read('NODE_ENV') === 'production',
    host: read('HOST'),
    port: read('PORT'),
    logLevel: read('LOG_LEVEL'),
    databaseUrl: read('DATABASE_URL'),
    databaseImportUrl: read('DATABASE_IMPORT_URL'),
    dataDir: read('DATA_DIR'),
    databasePoolSize: read('DATABASE_POOL_SIZE'),
    databaseImportPoolSize: read('DATABASE_IMPORT_POOL_SIZE'),
    databasePrepare: read('DATABASE_PREPARE'),
    databaseSharding: read('DATABASE_SHARDING'),
    redisAddress: read('REDIS_URL'),
    redisCa: read('REDIS_CA_FILE'),
    redisSentinelPassword: read('REDIS_SENTINEL_PASSWORD'),
    redisPrefix: read('REDIS_PREFIX'),
    rateLimitRequests: read('RATE_LIMIT_REQUESTS'),
    rateLimitRequestsPremium: read('RATE_LIMIT_REQUESTS_PREMIUM') ?? read('RATE_LIMIT_REQUESTS'),
    rateLimitWindowSeconds: read('RATE_LIMIT_WINDOW_SECONDS'),
    inviteFailuresPerMinute: read('INVITE_FAILURES_PER_MINUTE'),
    syncWaitSeconds: read('SYNC_WAIT_SECONDS'),
    maxWaiters: read('MAX_WAITERS'),
    freeBookmarkLimit: read('FREE_BOOKMARK_LIMIT'),
    importInlineBytes: read('IMPORT_INLINE_BYTES'),
    importWaitSeconds: read('IMPORT_WAIT_SECONDS'),
    importConcurrency: read('IMPORT_CONCURRENCY'),
    importStagedBytes: read('IMPORT_STAGED_BYTES'),
    sessionDays: read('SESSION_DAYS'),
    changesDays: read('CHANGES_DAYS'),
    corsOrigins: read('CORS_ORIGINS'),
    signIn: readSignIn(read),
    publicUrl: read('PUBLIC_URL'),
    trustProxy: read('TRUST_PROXY'),
    requestTimeoutSeconds: read('REQUEST_TIMEOUT_SECONDS'),
    compress: read('COMPRESS'),
    drainSeconds: read('DRAIN_SECONDS'),
    overloadEventLoopMs: read('OVERLOAD_EVENT_LOOP_MS'),
    overloadPoolWaitMs: read('OVERLOAD_POOL_WAIT_MS'),
    migrateWaitSeconds: read('MIGRATE_WAIT_SECONDS'),
    unsentBytes: read('UNSENT_BYTES'),
    responseStallSeconds: read('RESPONSE_STALL_SECONDS'),
    metricsPort: read('METRICS_PORT'),
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT'),
    traceRatio: read('OTEL_TRACES_SAMPLER_ARG'),
    traceResource: read('OTEL_RESOURCE_ATTRIBUTES'),
  };
  refuseIncomplete(config);
  refuseUnreachable(config);
  return config;
}
