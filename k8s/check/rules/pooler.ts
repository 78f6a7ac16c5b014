import { type KubernetesObject, nameOf } from '../objects.ts';
import { findConfig, readSecret } from './environment.ts';
import { listMountedFiles } from './files.ts';
import { countPodsAtMost } from './replicas.ts';
import { findRole, listWorkloads, ofKind, type Rule, unless, type Workload } from './rule.ts';

/** Connections to Postgres that the pools must leave free for the migration and the operator. */
const RESERVED_CONNECTIONS = 10;

/** Each process uses one extra connection to check whether the database responds. */
const PROBE_CONNECTIONS = 1;

/** The service's own time limits: for a statement that is not an import, and for waiting for a lock. */
const STATEMENT_TIMEOUT_MS = 6_000;
const LOCK_TIMEOUT_MS = 3_000;

/** The smallest allowed pool. In a smaller pool, one slow statement would delay everybody. */
const MIN_POOL_SIZE = 4;

/** Settings of `[pgbouncer]` on whose values the service's promises depend. */
const REQUIRED: Record<string, RegExp> = {
  listen_addr: /^\*$/,
  auth_type: /^scram-sha-256$/,
  server_tls_sslmode: /^verify-full$/,
  ignore_startup_parameters: /^extra_float_digits$/,
  pool_mode: /^transaction$/,
  max_prepared_statements: /^[1-9]\d\d$/,
  // A request waits up to 10 s for the database.
  query_wait_timeout: /^([1-9]|10)$/,
  server_login_retry: /^([1-9]|10)$/,
  // When DNS names another server after a failover, PgBouncer notices only when the cached address expires.
  dns_max_ttl: /^[12]$/,
};

/** Settings that end statements or sessions of the service, or give its role rights in the pooler. */
const FORBIDDEN = ['admin_users', 'query_timeout', 'client_idle_timeout', 'idle_transaction_timeout'];

/** A pooler and the configuration that it reads when it starts. */
export interface Pooler {
  workload: Workload;
  /** The values of `[pgbouncer]`, by key. */
  settings: Record<string, string>;
  /** The lines of `[databases]`, by the name of the database that clients use. */
  databases: Record<string, string>;
}

/** Parses an INI file: returns the values of each section by key. */
function readIni(text: string): Record<string, Record<string, string>> {
  const sections: Record<string, Record<string, string>> = {};
  let section = '';
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    if (line === '' || line.startsWith(';')) continue;
    const heading = /^\[(\w+)\]$/.exec(line)?.[1];
    if (heading !== undefined) {
      section = heading;
      sections[section] = {};
    }
    const [, key, value] = /^"?([\w.-]+)"? *= *(.*)$/.exec(line) ?? [];
    if (key !== undefined) sections[section]![key] = value!;
  }
  return sections;
}

/** Reads the configuration file in PgBouncer's command. Returns undefined if the workload is not PgBouncer. */
export function readPooler(objects: readonly KubernetesObject[], workload: Workload): Pooler | undefined {
  if (workload.labels['app.kubernetes.io/name'] !== 'pgbouncer') return undefined;
  const path: string | undefined = workload.main.command?.at(-1);
  const files = listMountedFiles(objects, workload, workload.main);
  const text = (files.get(path ?? '') ?? '').replaceAll(
    /^%include (\S+)$/gm,
    (_, included) => files.get(included) ?? '',
  );
  const { databases = {}, pgbouncer = {} } = readIni(text);
  return { workload, settings: pgbouncer, databases };
}

/** Returns the servers in a line of `[databases]`. */
export const listHosts = (line: string): string[] => /\bhost=(\S+)/.exec(line)?.[1]?.split(',') ?? [''];

/** Returns PgBouncer's databases that each lead to one node of a Citus cluster. */
const listNodeDatabases = ({ databases }: Pooler): [name: string, line: string][] =>
  Object.entries(databases).filter(([name]) => !['bookmarks', 'bookmarks_import'].includes(name));

/** Returns the largest number of connections to the pooler that all pods of the service may open together. */
function countClientConnections(objects: readonly KubernetesObject[], nodes: number): number {
  return (['api', 'worker'] as const)
    .map((role) => {
      const { databasePoolSize, databaseImportPoolSize } = findConfig(objects, role)!;
      const connectionsOfPod = databasePoolSize * (1 + nodes) + databaseImportPoolSize + PROBE_CONNECTIONS;
      return countPodsAtMost(objects, role) * connectionsOfPod;
    })
    .reduce((sum, connections) => sum + connections, 0);
}

const readNumber = (line: string, key: string): number =>
  Number(new RegExp(`\\b${key} *= *(\\d+)`).exec(line)?.[1] ?? Number.NaN);

/** Makes a rule that is checked only if the overlay has a pooler. */
const poolerRule = (
  name: string,
  fault: (pooler: Pooler, objects: readonly KubernetesObject[]) => string[],
): Rule => ({
  name,
  check: (objects) =>
    listWorkloads(objects).flatMap((workload) => {
      const pooler = readPooler(objects, workload);
      return pooler ? fault(pooler, objects).map((text) => `${nameOf(workload.owner)}: ${text}`) : [];
    }),
});

/** Returns the roles in `userlist.txt`, with their passwords. */
function readUsers(
  objects: readonly KubernetesObject[],
  { workload, settings }: Pooler,
): Map<string, string> {
  const text = listMountedFiles(objects, workload, workload.main).get(settings.auth_file ?? '') ?? '';
  return new Map(
    [...text.matchAll(/^"([^"]*)" "([^"]*)"$/gm)].map(([, user, password]) => [user!, password!]),
  );
}

/** Returns the urls with which the service connects to the pooler. */
function listClientUrls(objects: readonly KubernetesObject[]): URL[] {
  const { databaseUrl, databaseImportUrl } = findConfig(objects, 'api')!;
  return [databaseUrl, databaseImportUrl].filter((url) => url !== undefined).map((url) => new URL(url));
}

function findSessionFaults(name: string, line: string, statementMs: number, lockMs: number): string[] {
  const statement = readNumber(line, 'statement_timeout');
  const lock = readNumber(line, 'lock_timeout');
  return [
    ...unless(
      statement === statementMs,
      `${name}: statement_timeout is ${statement}, expected ${statementMs}`,
    ),
    ...unless(lock === lockMs, `${name}: lock_timeout is ${lock}, expected ${lockMs}`),
    ...['read committed', 'bytea_output = hex', 'array_nulls = on', 'jit = off']
      .filter((needed) => !line.includes(needed))
      .map((needed) => `${name}: sessions lack ${needed}`),
  ];
}

export const poolerRules: Rule[] = [
  poolerRule("replicas times pool fit into one pooler's connections", (pooler, objects) => {
    const needed = countClientConnections(objects, listNodeDatabases(pooler).length);
    const limit = Number(pooler.settings.max_client_conn);
    return unless(needed <= limit, `pods may open ${needed} connections, max_client_conn is ${limit}`);
  }),
  poolerRule("the poolers' pools fit into Postgres' connections, even with two roles", (pooler, objects) => {
    const { workload, databases } = pooler;
    // During a rotation the service uses two roles, and PgBouncer has a separate pool for each role. So PgBouncer may
    // open more connections per database than `pool_size`, up to `max_db_connections`. What counts here is the server
    // to which it opens the most connections.
    const perInstance = Math.max(
      ...Object.values(databases)
        .flatMap(listHosts)
        .map((host) =>
          Object.values(databases)
            .filter((line) => listHosts(line).includes(host))
            .map((line) => Math.max(readNumber(line, 'pool_size'), readNumber(line, 'max_db_connections')))
            .reduce((sum, connections) => sum + connections, 0),
        ),
    );
    const needed =
      countPodsAtMost(objects, workload.owner.metadata.name) * perInstance + RESERVED_CONNECTIONS;
    const limit = Number(workload.owner.metadata.annotations?.['bookmarks/postgres-max-connections']);
    return unless(needed <= limit, `opens up to ${needed} connections to Postgres, which grants ${limit}`);
  }),
  poolerRule("the pooler's settings keep the service's promises", ({ settings, databases, workload }) => {
    const image: string = workload.main.image;
    const [, major, minor] = /:(\d+)\.(\d+)/.exec(image) ?? [];
    return [
      ...unless(Number(major) === 1 && Number(minor) >= 21, `${image} is older than 1.21`),
      ...Object.entries(REQUIRED).flatMap(([key, allowed]) =>
        unless(allowed.test(settings[key] ?? ''), `${key} is ${settings[key]}`),
      ),
      ...FORBIDDEN.flatMap((key) => unless(settings[key] === undefined, `${key} is not allowed`)),
      ...Object.entries(databases)
        .filter(([, line]) => !(readNumber(line, 'pool_size') >= MIN_POOL_SIZE))
        .map(([name]) => `${name}: pool_size is below ${MIN_POOL_SIZE}`),
    ];
  }),
  poolerRule("the pooler's sessions have the service's timeouts and settings", (pooler, objects) => {
    const { databases } = pooler;
    const importMs = findConfig(objects, 'worker')!.importWaitSeconds * 1_000;
    const forRequests: [string, string][] = [
      ['bookmarks', databases.bookmarks ?? ''],
      ...listNodeDatabases(pooler),
    ];
    return [
      ...forRequests.flatMap(([name, line]) =>
        findSessionFaults(name, line, STATEMENT_TIMEOUT_MS, LOCK_TIMEOUT_MS),
      ),
      ...findSessionFaults('bookmarks_import', databases.bookmarks_import ?? '', importMs, importMs),
    ];
  }),
  poolerRule(
    "the pooler listens on its pods' port, and knows the databases and roles of the urls",
    (pooler, objects) => {
      const { workload, settings, databases } = pooler;
      const ports: { containerPort: number }[] = workload.main.ports ?? [];
      const users = readUsers(objects, pooler);
      return [
        ...unless(
          ports.some(({ containerPort }) => String(containerPort) === settings.listen_port),
          `listen_port ${settings.listen_port} is not a port of its container`,
        ),
        ...listClientUrls(objects).flatMap(({ pathname, username, password }) => [
          ...unless(databases[pathname.slice(1)] !== undefined, `there is no database ${pathname.slice(1)}`),
          ...unless(users.get(username) === password, `auth_file has no ${username} with the url's password`),
        ]),
        ...unless(
          listClientUrls(objects)
            .map(({ pathname }) => pathname)
            .join() === '/bookmarks,/bookmarks_import',
          'requests and imports do not use the databases with their timeouts',
        ),
        ...unless(
          new Set(
            [databases.bookmarks, databases.bookmarks_import].map((line) =>
              listHosts(line ?? '')
                .sort()
                .join(),
            ),
          ).size === 1,
          'requests and imports use different hosts',
        ),
        ...unless(users.has(settings.stats_users ?? ''), `auth_file has no ${settings.stats_users}`),
      ];
    },
  ),
  poolerRule("the pooler's files are mounted", ({ workload, settings }, objects) => {
    const files = listMountedFiles(objects, workload, workload.main);
    return ['auth_file', 'server_tls_ca_file']
      .filter((key) => !files.has(settings[key] ?? ''))
      .map((key) => `${key}: ${settings[key]} is not mounted`);
  }),
  {
    name: 'the serving role owns nothing, and secrets travel only over verified TLS',
    check: (objects) => {
      const { MIGRATE_DATABASE_URL: owner = '', REDIS_URL: redis = '' } =
        readSecret(objects, 'connections') ?? {};
      if (ofKind(objects, 'HTTPRoute').length === 0 || findRole(objects, 'api') === undefined) return [];
      const serving = listClientUrls(objects).map(({ username }) => username);
      return [
        ...unless(
          !serving.includes(new URL(owner).username),
          'DATABASE_URL has the role that owns the tables',
        ),
        ...unless(owner.includes('sslmode=verify-full'), 'MIGRATE_DATABASE_URL: sslmode is not verify-full'),
        ...unless(/^rediss(\+sentinel)?:/.test(redis), 'REDIS_URL: is not rediss://'),
      ].map((fault) => `Secret/connections: ${fault}`);
    },
  },
  {
    name: 'Redis evicts nothing and keeps its jobs over a restart',
    check: (objects) =>
      listWorkloads(objects)
        .filter(({ labels }) => labels['app.kubernetes.io/name'] === 'redis')
        .flatMap(({ owner, main }) => {
          const line = (main.args ?? []).join(' ');
          return ['--maxmemory-policy noeviction', '--appendonly yes']
            .filter((needed) => !line.includes(needed))
            .map((needed) => `${nameOf(owner)}: lacks ${needed}`);
        }),
  },
];
