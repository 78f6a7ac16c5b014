import { type Breakage, container, edit, set } from '../overlay-copy.ts';

const PGBOUNCER_INI = 'pgbouncer.ini';
const DATABASES_INI = 'databases.ini';

/** Mistakes in PgBouncer and the Secrets. */
export const POOLER: Breakage[] = [
  ['replicas times pool', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.maxReplicas = 100)],
  ['replicas times pool', 'ConfigMap/settings', set('DATABASE_POOL_SIZE', '50')],
  ['fit into Postgres', 'Deployment/pgbouncer', ({ spec }) => (spec.replicas = 4)],
  ['fit into Postgres', 'ConfigMap/pgbouncer', edit(DATABASES_INI, ' pool_size=6', '')],
  ['fit into Postgres', 'ConfigMap/pgbouncer', edit(DATABASES_INI, ' max_db_connections=20', '')],
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, '= transaction', '= session')],
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, 'max_prepared_statements = 200', '')],
  [
    'setting of the pooler',
    'Deployment/pgbouncer',
    (pooler) => (container(pooler).image = 'pgbouncer:1.18.0'),
  ],
  [
    'setting of the pooler',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'extra_float_digits', 'extra_float_digits, statement_timeout'),
  ],
  ['sessions have', 'ConfigMap/pgbouncer', edit(DATABASES_INI, 'set statement_timeout = 120000;', '')],
  [
    'sessions have',
    'ConfigMap/pgbouncer',
    edit(DATABASES_INI, 'lock_timeout = 3000', 'lock_timeout = 30000'),
  ],
  ['sessions have', 'ConfigMap/pgbouncer', edit(DATABASES_INI, 'set bytea_output = hex;', '')],
  ['sessions have', 'ConfigMap/settings', set('IMPORT_WAIT_SECONDS', '100')],
  [
    'the pooler listens on',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'listen_port = 6432', 'listen_port = 5432'),
  ],
  [
    'setting of the pooler',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'listen_addr = *', 'listen_addr = 127.0.0.1'),
  ],
  [
    'the pooler listens on',
    'ConfigMap/pgbouncer',
    edit(DATABASES_INI, 'bookmarks_import =', 'bookmarks_imports ='),
  ],
  [
    'the pooler listens on',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'stats_users = metrics', 'stats_users = stats'),
  ],
  ['the pooler listens on', 'Secret/pgbouncer', edit('userlist.txt', '"bookmarks_a"', '"bookmarks"')],
  [
    'files are mounted',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'secret/userlist.txt', 'secret/users.txt'),
  ],
  ['files are mounted', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, 'secret/ca.crt', 'config/ca.crt')],
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, 'scram-sha-256', 'any')],
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, 'verify-full', 'require')],
  [
    'setting of the pooler',
    'ConfigMap/pgbouncer',
    edit(PGBOUNCER_INI, 'query_wait_timeout = 10', 'query_wait_timeout = 120'),
  ],
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(PGBOUNCER_INI, 'server_login_retry = 1\n', '')],
  ...[
    ['dns_max_ttl = 1\n', ''],
    ['dns_max_ttl = 1', 'dns_max_ttl = 15'],
    ['log_connections = 0', 'log_connections = 0\nadmin_users = bookmarks_a'],
    ['log_connections = 0', 'log_connections = 0\nquery_timeout = 1'],
    ['log_connections = 0', 'log_connections = 0\nclient_idle_timeout = 5'],
    ['log_connections = 0', 'log_connections = 0\nlog_conections = 1'],
  ].map(
    ([from, to]): Breakage => [
      'setting of the pooler',
      'ConfigMap/pgbouncer',
      edit(PGBOUNCER_INI, from!, to!),
    ],
  ),
  ['setting of the pooler', 'ConfigMap/pgbouncer', edit(DATABASES_INI, 'pool_size=20', 'pool_size=1')],
  ['owns nothing', 'Secret/connections', edit('MIGRATE_DATABASE_URL', 'bookmarks_owner', 'bookmarks_a')],
  ['owns nothing', 'Secret/connections', edit('MIGRATE_DATABASE_URL', 'verify-full', 'require')],
  ['owns nothing', 'Secret/connections', edit('REDIS_URL', 'rediss', 'redis')],
  ['Redis evicts nothing', 'StatefulSet/redis', (redis) => container(redis).args.splice(1, 2), 'local'],
  [
    'the pooler listens on',
    'Secret/connections',
    edit('DATABASE_IMPORT_URL', '/bookmarks_import', '/bookmarks'),
  ],
  [
    'the pooler listens on',
    'ConfigMap/pgbouncer',
    ({ data }) => {
      data['databases.ini'] = data['databases.ini'].replace(
        /(bookmarks_import = .*?host=)\S+/,
        '$1other.example.org',
      );
    },
  ],
];
