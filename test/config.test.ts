import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Config, readConfig } from '../src/config.ts';
import { SIGN_IN_SCHEMAS } from '../src/sign-in/variables.ts';
import { messageFor } from './support/config-error.ts';

// Tests every environment variable: its default, its range, and the message about an invalid value.

/** The variables whose value is an integer: the name, field, minimum, maximum and default of each. */
const INTEGERS: [string, keyof Config, number, number, number | undefined][] = [
  ['PORT', 'port', 0, 65_535, 3_000],
  ['DATABASE_POOL_SIZE', 'databasePoolSize', 1, 1_000, 10],
  ['DATABASE_IMPORT_POOL_SIZE', 'databaseImportPoolSize', 1, 100, 2],
  ['RATE_LIMIT_REQUESTS', 'rateLimitRequests', 1, 100_000, 100],
  ['RATE_LIMIT_REQUESTS_PREMIUM', 'rateLimitRequestsPremium', 1, 100_000, 100],
  ['RATE_LIMIT_REQUESTS_PER_ACCOUNT', 'rateLimitRequestsPerAccount', 1, 500_000, undefined],
  ['RATE_LIMIT_REQUESTS_PER_ACCOUNT_PREMIUM', 'rateLimitRequestsPerAccountPremium', 1, 500_000, undefined],
  ['INVITE_FAILURES_PER_MINUTE', 'inviteFailuresPerMinute', 1, 1_000_000, 600],
  ['RATE_LIMIT_WINDOW_SECONDS', 'rateLimitWindowSeconds', 1, 3_600, 60],
  ['SYNC_WAIT_SECONDS', 'syncWaitSeconds', 1, 30, 29],
  ['MAX_WAITERS', 'maxWaiters', 1, 1_000_000, 12_000],
  ['FREE_BOOKMARK_LIMIT', 'freeBookmarkLimit', 0, 1_000_000_000, 10_000],
  ['IMPORT_INLINE_BYTES', 'importInlineBytes', 0, 67_108_864, 1_048_576],
  ['IMPORT_WAIT_SECONDS', 'importWaitSeconds', 1, 3_600, 120],
  ['IMPORT_CONCURRENCY', 'importConcurrency', 1, 64, 2],
  ['IMPORT_STAGED_BYTES', 'importStagedBytes', 1, 1_099_511_627_776, 4_294_967_296],
  ['SESSION_DAYS', 'sessionDays', 1, 3_650, 90],
  ['CHANGES_DAYS', 'changesDays', 1, 3_650, 90],
  ['TRASH_DAYS', 'trashDays', 0, 3_650, 30],
  ['REQUEST_TIMEOUT_SECONDS', 'requestTimeoutSeconds', 1, 3_600, 120],
  ['DRAIN_SECONDS', 'drainSeconds', 0, 60, 0],
  ['MIGRATE_WAIT_SECONDS', 'migrateWaitSeconds', 0, 3_600, 60],
  ['OVERLOAD_EVENT_LOOP_MS', 'overloadEventLoopMs', 0, 60_000, 500],
  ['OVERLOAD_POOL_WAIT_MS', 'overloadPoolWaitMs', 0, 60_000, 2_000],
  ['UNSENT_BYTES', 'maxOutboundBacklog', 1_048_576, 1_099_511_627_776, 268_435_456],
  ['RESPONSE_STALL_SECONDS', 'responseStallSeconds', 1, 3_600, 30],
  ['METRICS_PORT', 'metricsPort', 0, 65_535, undefined],
];

/** The path of a file that exists. */
const SOME_FILE = new URL('../package.json', import.meta.url).pathname;

/**
 * The other variables. Each row has a variable's name, its field in `Config`, its default, the accepted texts with the
 * value that each gives, and the refused texts.
 */
const OTHERS: [string, keyof Config, unknown, [string, unknown][], string[]][] = [
  [
    'NODE_ENV',
    'production',
    false,
    [
      ['development', false],
      ['test', false],
    ],
    [],
  ],
  [
    'HOST',
    'host',
    '127.0.0.1',
    [
      ['0.0.0.0', '0.0.0.0'],
      ['::', '::'],
    ],
    [],
  ],
  [
    'LOG_LEVEL',
    'logLevel',
    'info',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => [level, level]),
    ['INFO', 'verbose', '30'],
  ],
  [
    'DATABASE_URL',
    'databaseUrl',
    undefined,
    [
      'postgres://u:p@localhost:5432/b',
      'postgresql://localhost/b?sslmode=verify-full',
      'postgres://a:1,b:2/c',
      'postgres://u:p%40@a:1,b:2,[::1]:3/c?target_session_attrs=read-write',
      'postgres:///b?host=/run/postgresql',
    ].map((url) => [url, url]),
    [
      'localhost',
      'mysql://u:geheim@localhost/b',
      'postgres://',
      'http://localhost',
      'postgres://u:geheim@localhost:port/b',
      'postgres://u:geheim%@localhost/b',
      'postgres://u:geheim@[::1/b',
      'postgres://localhost/b?sslrootcert=/no/such.pem',
    ],
  ],
  [
    'DATABASE_IMPORT_URL',
    'databaseImportUrl',
    undefined,
    [['postgres://localhost/b', 'postgres://localhost/b']],
    ['mysql://u:geheim@localhost/b'],
  ],
  ['DATA_DIR', 'dataDir', '.data', [['/var/lib/bookmarks', '/var/lib/bookmarks']], []],
  [
    'DATABASE_PREPARE',
    'databasePrepare',
    true,
    [
      ['true', true],
      ['false', false],
    ],
    ['yes', '1', 'TRUE'],
  ],
  [
    'COMPRESS',
    'compress',
    true,
    [
      ['on', true],
      ['off', false],
    ],
    ['true', 'gzip'],
  ],
  [
    'COMPAT_LINKDING',
    'compatLinkding',
    false,
    [
      ['true', true],
      ['false', false],
    ],
    ['on', '1'],
  ],
  [
    'DATABASE_SHARDING',
    'databaseSharding',
    undefined,
    [
      ['none', undefined],
      ['citus', 'citus'],
    ],
    ['Citus', 'true'],
  ],
  [
    'DATABASE_NODES',
    'databaseNodes',
    undefined,
    [
      ['pgbouncer:6432/{host}', 'pgbouncer:6432/{host}'],
      ['{host}:{port}/bookmarks', '{host}:{port}/bookmarks'],
    ],
    ['pgbouncer:6432/bookmarks', '{host}', 'postgres://{host}/bookmarks', 'u:p@{host}/bookmarks'],
  ],
  [
    'REDIS_URL',
    'redisAddress',
    undefined,
    [
      ['redis://localhost:6379', { kind: 'servers', urls: ['redis://localhost:6379'] }],
      ['rediss://u:p@a:1, redis://b:2,', { kind: 'servers', urls: ['rediss://u:p@a:1', 'redis://b:2'] }],
      [
        'redis+sentinel://a,b:26380,[::1]:5000/main',
        {
          ...{ kind: 'sentinels', name: 'main', db: 0, tls: false },
          sentinels: [
            { host: 'a', port: 26_379 },
            { host: 'b', port: 26_380 },
            { host: '::1', port: 5_000 },
          ],
        },
      ],
      [
        'rediss+sentinel://us%40er:p%2Fw%3A%25@sentinel.example:1/my%20master/7',
        {
          ...{ kind: 'sentinels', name: 'my master', db: 7, tls: true, username: 'us@er', password: 'p/w:%' },
          sentinels: [{ host: 'sentinel.example', port: 1 }],
        },
      ],
      [
        'redis+sentinel://:only-a-password@a/main',
        {
          ...{ kind: 'sentinels', name: 'main', db: 0, tls: false, password: 'only-a-password' },
          sentinels: [{ host: 'a', port: 26_379 }],
        },
      ],
    ],
    [
      'localhost:6379',
      'http://:geheim@localhost',
      'redis://a,b',
      ',',
      'redis://:ge%heim@localhost',
      'redis://:ge@heim/@localhost',
      'redis://:ge#heim@localhost',
      'redis+sentinel://a',
      'redis+sentinel://a/',
      'redis+sentinel:///main',
      'redis+sentinel://a,,b/main',
      'redis+sentinel://a:70000/main',
      'redis+sentinel://a/main/db',
      'redis+sentinel://:ge%heim@a/main',
      'redis+sentinel://:ge@heim@a/main',
      'redis+sentinel://a/main?tls=1',
    ],
  ],
  [
    'REDIS_PREFIX',
    'redisPrefix',
    'bookmarks',
    [['staging.v-2_b', 'staging.v-2_b']],
    ['a b', 'a:b', '{a}', 'x'.repeat(65)],
  ],
  [
    'REDIS_CA_FILE',
    'redisCa',
    undefined,
    [[SOME_FILE, readFileSync(SOME_FILE, 'utf8')]],
    ['/no/such/file.pem', '/'],
  ],
  ['REDIS_SENTINEL_PASSWORD', 'redisSentinelPassword', undefined, [['s3cret/@:%', 's3cret/@:%']], []],
  [
    'CORS_ORIGINS',
    'corsOrigins',
    [],
    [
      [
        'https://a.example, chrome-extension://abc,http://localhost:5173',
        ['https://a.example', 'chrome-extension://abc', 'http://localhost:5173'],
      ],
    ],
    ['*', 'https://a.example/', 'a.example', 'https://a.example/path', 'null', 'https://A.example'],
  ],
  [
    'PUBLIC_URL',
    'publicUrl',
    undefined,
    [
      'https://bookmarks.example.org',
      'https://bookmarks.example.org:8443',
      'http://localhost:3000',
      'http://127.0.0.1',
      'http://[::1]:3000',
    ].map((url) => [url, url]),
    [
      'bookmarks.example.org',
      'https://bookmarks.example.org/',
      'https://bookmarks.example.org/path',
      'https://bookmarks.example.org?a',
      'https://user@bookmarks.example.org',
      'https://Bookmarks.example.org',
      'https://bookmarks.example.org:443',
      'http://bookmarks.example.org',
      'http://localhost.example.org',
      'http://127.0.0.1.example.org',
      'ftp://localhost',
      'null',
    ],
  ],
  [
    'TRUST_PROXY',
    'trustProxy',
    false,
    [
      ['0', false],
      ['false', false],
      ['1', 1],
      ['12', 12],
      ['10.0.0.0/8, 2001:db8::/32,192.0.2.1', ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1']],
      ['loopback', ['loopback']],
    ],
    ['true', 'all', '*', '-1', '1.5', '0.0.0.0/0', '::/0', '10.0.0.0/33', '10.0.0/8', 'example.org', ','],
  ],
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'otlpEndpoint',
    undefined,
    [['http://localhost:4318', 'http://localhost:4318']],
    ['localhost:4318', 'grpc://localhost'],
  ],
  [
    'OTEL_TRACES_SAMPLER_ARG',
    'traceRatio',
    1,
    [
      ['0', 0],
      ['0.01', 0.01],
      ['1.0', 1],
    ],
    ['1.1', '-1', '50%', ''.padEnd(3, 'x')],
  ],
  [
    'LOG_REQUESTS',
    'logRequests',
    1,
    [
      ['all', 1],
      ['errors', 0],
      ['1/1', 1],
      ['1/100', 0.01],
    ],
    ['none', '1/0', '2/3', '0.5', '1/1000000'],
  ],
  ['ADMIN_OPERATOR', 'adminOperator', undefined, [['ann', 'ann']], ['x'.repeat(256)]],
  [
    'OTEL_RESOURCE_ATTRIBUTES',
    'traceResource',
    {},
    [
      [
        'service.instance.id=api-1, deployment.environment.name=pro%20duction,empty=',
        { 'service.instance.id': 'api-1', 'deployment.environment.name': 'pro duction', empty: '' },
      ],
    ],
    ['pod', 'a=%', '=b', 'a=b,c'],
  ],
];

test('the tables of this file contain every variable', () => {
  const names = new Set<string>();
  readConfig(
    new Proxy(
      {},
      {
        get: (_, name) => {
          names.add(String(name));
          return undefined;
        },
      },
    ),
  );
  // The variables for signing in depend on each other, so test/sign-in-config.test.ts tests them.
  const tested = [...INTEGERS, ...OTHERS].map(([name]) => name as string);
  expect([...names].sort()).toEqual([...tested, ...Object.keys(SIGN_IN_SCHEMAS)].sort());
});

describe('defaults', () => {
  test.each([
    ...INTEGERS.map(([name, field, , , byDefault]) => [name, field, byDefault] as const),
    ...OTHERS.map(([name, field, byDefault]) => [name, field, byDefault] as const),
  ])('the default of %s (%s) is %j', (name, field, byDefault) => {
    expect(readConfig({})[field]).toEqual(byDefault);
    for (const blank of ['', '  ']) expect(readConfig({ [name]: blank })[field]).toEqual(byDefault);
  });
});

describe('ranges', () => {
  test.each(INTEGERS)('%s: %s is an integer from %i to %i', (name, field, min, max) => {
    for (const value of [min, max]) expect(readConfig({ [name]: ` ${value} ` })[field]).toBe(value);
    for (const value of [min - 1, max + 1, 1.5, '1e2', '0x10', 'many', '5 5', '+5', '9'.repeat(30)]) {
      const message = messageFor({ [name]: String(value) });
      expect(message).toMatch(
        new RegExp(
          `^${name}: expected an integer from ${min} to ${max}, got ".*"; for example ${name}=\\d+$`,
        ),
      );
      expect(message).toContain(`"${value}"`);
    }
  });

  test.each(OTHERS)('%s: %s', (name, field, _, taken, refused) => {
    for (const [text, value] of taken) expect(readConfig({ [name]: text })[field]).toEqual(value);
    for (const text of refused) {
      const message = messageFor({ [name]: text });
      expect(message).toMatch(new RegExp(`^${name}: expected .+; for example ${name}=.+$`));
      expect(message.split('\n')).toHaveLength(1);
      // For a url, which may contain a password, the message does not repeat the value.
      if (name.endsWith('_URL')) expect(message).not.toMatch(/, got |geheim/);
      else expect(message).toContain(`got "${text}"`);
    }
  });

  test('premium accounts have the general rate limit unless they have their own', () => {
    expect(readConfig({ RATE_LIMIT_REQUESTS: '7' }).rateLimitRequestsPremium).toBe(7);
    const both = readConfig({ RATE_LIMIT_REQUESTS: '7', RATE_LIMIT_REQUESTS_PREMIUM: '30' });
    expect([both.rateLimitRequests, both.rateLimitRequestsPremium]).toEqual([7, 30]);
  });

  test('an account has no limit unless it is set; premium accounts have the same limit unless they have their own', () => {
    const limitsOf = (env: Record<string, string>) => {
      const { rateLimitRequestsPerAccount, rateLimitRequestsPerAccountPremium } = readConfig(env);
      return [rateLimitRequestsPerAccount, rateLimitRequestsPerAccountPremium];
    };
    expect(limitsOf({ RATE_LIMIT_REQUESTS: '7', RATE_LIMIT_REQUESTS_PREMIUM: '30' })).toEqual([
      undefined,
      undefined,
    ]);
    const own = { RATE_LIMIT_REQUESTS_PER_ACCOUNT: '50' };
    expect(limitsOf(own)).toEqual([50, 50]);
    const premium = { RATE_LIMIT_REQUESTS_PER_ACCOUNT_PREMIUM: '90' };
    expect(limitsOf({ ...own, ...premium })).toEqual([50, 90]);
    expect(limitsOf(premium)).toEqual([undefined, 90]);
  });

  test('the example in a message is a valid value', () => {
    for (const [name] of [...INTEGERS, ...OTHERS]) {
      if (['NODE_ENV', 'HOST', 'DATA_DIR', 'REDIS_CA_FILE', 'REDIS_SENTINEL_PASSWORD'].includes(name))
        continue;
      const example = messageFor({ [name]: '\u0001' }).split(`for example ${name}=`)[1]!;
      expect(() => readConfig({ [name]: example })).not.toThrow();
    }
  });
});

describe('NODE_ENV=production', () => {
  const DATABASE_URL = 'postgres://localhost/b';
  const REDIS_URL = 'redis://localhost';

  test('refuses to start without DATABASE_URL or REDIS_URL and says which is missing', () => {
    const production = { NODE_ENV: 'production' };
    expect(messageFor(production)).toMatch(
      /^DATABASE_URL and REDIS_URL: required when NODE_ENV=production; for example /,
    );
    expect(messageFor({ ...production, DATABASE_URL })).toMatch(/^REDIS_URL: required /);
    expect(messageFor({ ...production, REDIS_URL })).toMatch(/^DATABASE_URL: required /);
    expect(readConfig({ ...production, DATABASE_URL, REDIS_URL }).production).toBe(true);
  });
});
