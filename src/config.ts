import { isIP } from 'node:net';
import { z } from 'zod';
import { parseRedisAddress, type RedisAddress } from './coordination/redis/address.ts';
import { BOUNDS } from './domain/bounds.ts';
import { DEFAULT_WAITS } from './domain/waits.ts';
import {
  fileText,
  flag,
  isLoopback,
  SIGN_IN_SCHEMAS,
  type SignInSettings,
  signInSettings,
  splitList,
} from './sign-in/variables.ts';
import { findUrlFault } from './store/driver/url.ts';

/** The error for an invalid environment variable. The message names the variable and the fault, and has an example. */
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

// This does not parse the text with `URL`, which accepts only one host. A Postgres url may name several.
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

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && text === `${url.protocol}//${url.host}`;
};

/**
 * Whether the text is an origin with HTTPS, or with HTTP on loopback. With HTTP on any other host, anybody in the
 * network could read the session token.
 */
function isSafeOrigin(text: string): boolean {
  if (!isOrigin(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** Names of groups of networks that Fastify's `trustProxy` accepts. */
const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

const isNetwork = (text: string): boolean => {
  if (NAMED_NETWORKS.includes(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  const maxBits = version === 4 ? 32 : 128;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= maxBits);
};

const trustProxy = z
  .string()
  .transform((text): number | string[] | false => {
    if (text === '0' || text === 'false') return false;
    return /^\d{1,2}$/.test(text) ? Number(text) : splitList(text);
  })
  .refine((value) => !Array.isArray(value) || (value.length > 0 && value.every(isNetwork)), {
    error: 'expected the number of proxies or a list of their networks; trusting everyone is not allowed',
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
        'expected redis:// or rediss:// with a host, a port and an optional database number; one url or several separated ' +
        'by commas, or redis+sentinel://host:26379,host:26379/name; write special characters in a password like %40',
      input: text,
    });
    return z.NEVER;
  })
  .optional()
  .meta({ example: 'redis://localhost:6379', secret: true });

/** Converts `all`, `errors` or a share such as `1/100` to a number: the share of ordinary requests to log. */
function readLogShare(text: string): number {
  if (text === 'all') return 1;
  if (text === 'errors') return 0;
  return 1 / Number(text.slice('1/'.length));
}

/** A list like `key=value,key=value`. The values are percent-encoded, as OpenTelemetry specifies. */
const resourceAttributes = z
  .string()
  .transform((text, ctx): Record<string, string> => {
    const attributes: Record<string, string> = {};
    try {
      for (const pair of splitList(text)) {
        const [, name, value = ''] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
        if (name === undefined) throw new URIError('a pair has no name');
        attributes[name.trim()] = decodeURIComponent(value.trim());
      }
      return attributes;
    } catch {
      ctx.issues.push({ code: 'custom', message: 'expected key=value, separated by commas', input: text });
      return z.NEVER;
    }
  })
  .default({})
  .meta({ example: 'service.instance.id=api-1,deployment.environment.name=production' });

/** Describes a setting by the name of its variable and the schema that checks and parses the variable's text. */
const variable = <Schema extends z.ZodType>(name: string, schema: Schema) => ({ name, schema });

/** All settings except those for signing in. docs/configuration.md describes their variables. */
const SETTINGS = {
  production: variable(
    'NODE_ENV',
    z
      .string()
      .default('development')
      .transform((text) => text === 'production')
      .meta({ example: 'production' }),
  ),
  host: variable('HOST', z.string().default('127.0.0.1').meta({ example: '0.0.0.0' })),
  port: variable('PORT', integer(0, 65_535, 3_000)),
  logLevel: variable(
    'LOG_LEVEL',
    z
      .enum(LOG_LEVELS, `expected one of ${LOG_LEVELS.join(', ')}`)
      .default('info')
      .meta({ example: 'info' }),
  ),
  /**
   * The share of ordinary requests that are logged, from 0 to 1. `isLogged` in `http/report-requests.ts` says which
   * requests are always logged.
   */
  logRequests: variable(
    'LOG_REQUESTS',
    z
      .string()
      .regex(/^(all|errors|1\/[1-9]\d{0,5})$/, 'expected all, errors, or a share such as 1/100')
      .default('all')
      .transform(readLogShare)
      .meta({ example: '1/100' }),
  ),
  /** If absent, the service starts an embedded Postgres in `dataDir`. */
  databaseUrl: variable('DATABASE_URL', databaseUrl),
  /**
   * The database url for imports. It lets a pooler such as PgBouncer give longer timeouts to the statements of imports,
   * which may take minutes. Default: `databaseUrl`.
   */
  databaseImportUrl: variable('DATABASE_IMPORT_URL', databaseUrl),
  dataDir: variable('DATA_DIR', z.string().default('.data').meta({ example: '.data' })),
  databasePoolSize: variable('DATABASE_POOL_SIZE', integer(1, 1_000, 10)),
  databaseImportPoolSize: variable('DATABASE_IMPORT_POOL_SIZE', integer(1, 100, 2)),
  databasePrepare: variable('DATABASE_PREPARE', flag(true)),
  /** Whether `migrate` distributes the tables over the nodes of a Citus cluster. This cannot be undone. */
  databaseSharding: variable(
    'DATABASE_SHARDING',
    z
      .enum(['none', 'citus'], 'expected none or citus')
      .default('none')
      .transform((text) => (text === 'none' ? undefined : text))
      .meta({ example: 'citus' }),
  ),
  /**
   * A pattern for the address and database of each node of a Citus cluster, such as `pgbouncer:6432/{host}`. If it is
   * present, statements about one user go directly to the node with the user's rows.
   */
  databaseNodes: variable(
    'DATABASE_NODES',
    z
      .string()
      .regex(
        /^(?=.*\{(host|port)\})[^/@?\s]+\/[^/@?\s]+$/,
        'expected address:port/database with {host} or {port}',
      )
      .optional()
      .meta({ example: 'pgbouncer:6432/{host}' }),
  ),
  /** If absent, there may be only one replica, because replicas share rate limits and notifications through Redis. */
  redisAddress: variable('REDIS_URL', redisAddress),
  /**
   * The certificate, in PEM, of the authority that signed Redis's certificate. If absent, Node trusts its usual
   * authorities.
   */
  redisCa: variable(
    'REDIS_CA_FILE',
    fileText('expected a file that can be read and is not empty', '/etc/redis/ca.pem'),
  ),
  /** The password of the Sentinels. The password of Redis itself is in `REDIS_URL`. */
  redisSentinelPassword: variable('REDIS_SENTINEL_PASSWORD', z.string().optional().meta({ secret: true })),
  redisPrefix: variable(
    'REDIS_PREFIX',
    z
      .string()
      .regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, dots, hyphens and underscores')
      .default('bookmarks')
      .meta({ example: 'bookmarks' }),
  ),
  rateLimitRequests: variable('RATE_LIMIT_REQUESTS', integer(1, 100_000, 100)),
  rateLimitRequestsPremium: variable(
    'RATE_LIMIT_REQUESTS_PREMIUM',
    wholeNumber(1, 100_000).optional().meta({ example: '500' }),
  ),
  /** The limit of the requests of all tokens of an account together. If absent, accounts have no limit. */
  rateLimitRequestsPerAccount: variable(
    'RATE_LIMIT_REQUESTS_PER_ACCOUNT',
    wholeNumber(1, 500_000).optional().meta({ example: '500' }),
  ),
  /** The same for premium accounts. Default: `rateLimitRequestsPerAccount`. */
  rateLimitRequestsPerAccountPremium: variable(
    'RATE_LIMIT_REQUESTS_PER_ACCOUNT_PREMIUM',
    wholeNumber(1, 500_000).optional().meta({ example: '2500' }),
  ),
  rateLimitWindowSeconds: variable('RATE_LIMIT_WINDOW_SECONDS', integer(1, 3_600, 60)),
  /** The limit of wrong invite codes per minute, counted over all requests that name no e-mail address. */
  inviteFailuresPerMinute: variable('INVITE_FAILURES_PER_MINUTE', integer(1, 1_000_000, 600)),
  syncWaitSeconds: variable('SYNC_WAIT_SECONDS', integer(1, 30, 29)),
  maxWaiters: variable('MAX_WAITERS', integer(1, 1_000_000, 12_000)),
  freeBookmarkLimit: variable('FREE_BOOKMARK_LIMIT', integer(0, 1_000_000_000, 10_000)),
  importInlineBytes: variable('IMPORT_INLINE_BYTES', integer(0, BOUNDS.importBytes, 1_048_576)),
  importWaitSeconds: variable('IMPORT_WAIT_SECONDS', integer(1, 3_600, DEFAULT_WAITS.importWaitSeconds)),
  importConcurrency: variable('IMPORT_CONCURRENCY', integer(1, 64, 2)),
  importStagedBytes: variable('IMPORT_STAGED_BYTES', integer(1, 1_099_511_627_776, 4_294_967_296)),
  sessionDays: variable('SESSION_DAYS', integer(1, 3_650, 90)),
  /** How long edits and deletions are kept for `/bookmarks/changes`. */
  changesDays: variable('CHANGES_DAYS', integer(1, 3_650, 90)),
  /** How long bookmarks stay in the trash. 0 turns the trash off: then every deletion is permanent. */
  trashDays: variable('TRASH_DAYS', integer(0, 3_650, 30)),
  corsOrigins: variable(
    'CORS_ORIGINS',
    z
      .string()
      .transform(splitList)
      .refine((origins) => origins.every(isOrigin), 'expected origins separated by commas')
      .default([])
      .meta({ example: 'https://app.example.org,chrome-extension://abcdefghijklmnop' }),
  ),
  /**
   * The service's public origin: `https`, or `http` on loopback. If it is absent and the service listens on loopback,
   * the service uses its own address. If it is absent and the service listens elsewhere, there are no pages and no
   * browser sessions.
   */
  publicUrl: variable(
    'PUBLIC_URL',
    z
      .string()
      .refine(
        isSafeOrigin,
        'expected an origin: https:// and a host, without a path; http:// on loopback only',
      )
      .optional()
      .meta({ example: 'https://bookmarks.example.org', secret: true }),
  ),
  /** The proxies whose `X-Forwarded-For` is trusted: their number, or a list of their networks. `false` means none. */
  trustProxy: variable('TRUST_PROXY', trustProxy),
  requestTimeoutSeconds: variable(
    'REQUEST_TIMEOUT_SECONDS',
    integer(1, 3_600, DEFAULT_WAITS.requestTimeoutSeconds),
  ),
  /** Whether responses are compressed for clients that accept compression. */
  compress: variable(
    'COMPRESS',
    z
      .enum(['on', 'off'], 'expected on or off')
      .default('on')
      .transform((value) => value === 'on')
      .meta({ example: 'off' }),
  ),
  /** Whether the service also offers linkding's API. */
  compatLinkding: variable('COMPAT_LINKDING', flag(false)),
  drainSeconds: variable('DRAIN_SECONDS', integer(0, 60, 0)),
  /** Requests are refused while the mean delay of the event loop exceeds this. 0 disables the check. */
  overloadEventLoopMs: variable('OVERLOAD_EVENT_LOOP_MS', integer(0, 60_000, 500)),
  /** Requests are refused while a statement has waited longer than this for a connection. 0 disables the check. */
  overloadPoolWaitMs: variable('OVERLOAD_POOL_WAIT_MS', integer(0, 60_000, 2_000)),
  /** The name of the operator who runs admin commands. The audit records it. */
  adminOperator: variable(
    'ADMIN_OPERATOR',
    z
      .string()
      .regex(/^\P{Cc}{1,255}$/u, 'expected at most 255 characters, none of them a control character')
      .optional()
      .meta({ example: 'ann@example.org' }),
  ),
  /** How long `migrate` retries while Postgres cannot be reached or a table is in use. */
  migrateWaitSeconds: variable('MIGRATE_WAIT_SECONDS', integer(0, 3_600, 60)),
  /** The most response bytes that all clients together may leave unread. If more are unread, requests are refused. */
  maxOutboundBacklog: variable('UNSENT_BYTES', integer(1_048_576, 1_099_511_627_776, 268_435_456)),
  /** A client that has responses to read, and reads less than 16 KiB of them in this time, is disconnected. */
  responseStallSeconds: variable('RESPONSE_STALL_SECONDS', integer(1, 3_600, 30)),
  /** If absent, the process serves no metrics. */
  metricsPort: variable('METRICS_PORT', port.optional().meta({ example: '9464' })),
  /** The url of the collector of traces. If absent, nothing is traced. */
  otlpEndpoint: variable(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    z
      .string()
      .regex(/^https?:\/\/./, 'expected an http or https url')
      .optional()
      .meta({ example: 'http://localhost:4318' }),
  ),
  traceRatio: variable(
    'OTEL_TRACES_SAMPLER_ARG',
    z
      .string()
      .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'expected a number from 0 to 1')
      .transform(Number)
      .default(1)
      .meta({ example: '0.01' }),
  ),
  /** The operator's own attributes, which identify this process in traces. */
  traceResource: variable('OTEL_RESOURCE_ATTRIBUTES', resourceAttributes),
};

type Settings = typeof SETTINGS;

type Values = { -readonly [Name in keyof Settings]: z.output<Settings[Name]['schema']> };

/** The complete configuration of a process, checked and typed. */
export type Config = Values & {
  rateLimitRequestsPremium: number;
  /** How people sign in, apart from invites. */
  signIn: SignInSettings;
};

/** The schemas of all variables, by name. */
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  ...Object.fromEntries(Object.values(SETTINGS).map(({ name, schema }) => [name, schema])),
  ...SIGN_IN_SCHEMAS,
};

/** Returns an example of a variable for error messages, such as `PORT=3000`. */
const describeExample = (name: string): string => `${name}=${String(SCHEMAS[name]?.meta()?.example)}`;

/** Returns the trimmed text of a variable; undefined if the variable is unset or blank. */
const textOf = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined;

/** Returns the error for a variable that breaks a rule. Its message never contains the value of a secret. */
function errorOf(env: Environment, name: string, rule: string | undefined): ConfigError {
  const text = textOf(env, name);
  const got = text === undefined || SCHEMAS[name]?.meta()?.secret ? '' : `, got "${text}"`;
  return new ConfigError(`${name}: ${rule}${got}; for example ${describeExample(name)}`);
}

/** Returns the value of a variable. Throws a `ConfigError` if its text is invalid. */
function readVariable(env: Environment, name: string, schema: z.ZodType): unknown {
  const { success, data, error } = schema.safeParse(textOf(env, name));
  if (success) return data;
  throw errorOf(env, name, error.issues[0]?.message);
}

/** Reads the variables for signing in. Throws a `ConfigError` if one is invalid or their combination is forbidden. */
function readSignIn(env: Environment): SignInSettings {
  const names = Object.keys(SIGN_IN_SCHEMAS);
  const texts = Object.fromEntries(names.map((name) => [name, textOf(env, name)]));
  const { success, data, error } = signInSettings.safeParse(texts);
  if (success) return data;
  const [issue] = error.issues;
  throw errorOf(env, String(issue?.path[0]), issue?.message);
}

/** Throws a `ConfigError` in production if the database or Redis is not configured. */
function refuseIncomplete({ production, databaseUrl, redisAddress }: Config): void {
  const missing = [
    ...(databaseUrl === undefined ? [SETTINGS.databaseUrl.name] : []),
    ...(redisAddress === undefined ? [SETTINGS.redisAddress.name] : []),
  ];
  if (!production || missing.length === 0) return;
  throw new ConfigError(
    `${missing.join(' and ')}: required when NODE_ENV=production; for example ${missing.map(describeExample).join(' ')}`,
  );
}

/** Whether the service has pages. They need a known origin, because the session cookie depends on the origin. */
export const servesPages = ({ publicUrl, host }: Pick<Config, 'publicUrl' | 'host'>): boolean =>
  publicUrl !== undefined || isLoopback(host);

/**
 * Refuses a sign-in provider if the service does not know its own origin. The provider redirects browsers to that
 * origin, and a client can send any `Host` header.
 */
function refuseProviderWithoutOrigin(env: Environment, config: Config): void {
  if (config.signIn.provider === undefined || servesPages(config)) return;
  throw errorOf(env, SETTINGS.publicUrl.name, 'required if OIDC_ISSUER is set');
}

/** Fills in the rate limits that are not set. By default, premium accounts have the same limits as other accounts. */
const completeRateLimits = (values: Values) => ({
  rateLimitRequestsPremium: values.rateLimitRequestsPremium ?? values.rateLimitRequests,
  rateLimitRequestsPerAccountPremium:
    values.rateLimitRequestsPerAccountPremium ?? values.rateLimitRequestsPerAccount,
});

/** Reads the configuration from the environment. Throws a `ConfigError` for the first invalid variable. */
export function readConfig(env: Environment = process.env): Config {
  const settings = Object.fromEntries(
    Object.entries(SETTINGS).map(([setting, { name, schema }]) => [setting, readVariable(env, name, schema)]),
  ) as Values;
  const config: Config = { ...settings, ...completeRateLimits(settings), signIn: readSignIn(env) };
  refuseIncomplete(config);
  refuseProviderWithoutOrigin(env, config);
  return config;
}
