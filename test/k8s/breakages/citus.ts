import { readObjects } from '../../../k8s/check/kustomize.ts';
import { type Breakage, container, edit, remove, set } from '../overlay-copy.ts';

const OVERLAY = 'production-citus';
const COORDINATOR = 'postgres.example.org';
const NODES = `host=${COORDINATOR},worker-1.example.org,worker-2.example.org`;

const DUMP = `
apiVersion: batch/v1
kind: CronJob
metadata: { name: dump, namespace: bookmarks }
spec:
  schedule: 17 3 * * *
  jobTemplate: { spec: { template: { metadata: { labels: { app: dump } }, spec: { containers: [{ name: dump }] } } } }
`;

/** Mistakes in the Citus overlay. */
export const CITUS: Breakage[] = [
  [
    'the coordinator migrates',
    'Job/migrate',
    (job) => container(job).env.push({ name: 'DATABASE_SHARDING', value: 'none' }),
    OVERLAY,
  ],
  [
    'the coordinator migrates',
    'Secret/connections',
    edit('MIGRATE_DATABASE_URL', `${COORDINATOR}:5432`, `${COORDINATOR}:5432,worker-1.example.org:5432`),
    OVERLAY,
  ],
  [
    'the pooler listens on',
    'ConfigMap/pgbouncer',
    (map) => {
      map.data['databases.ini'] = map.data['databases.ini'].replace(NODES, `host=${COORDINATOR}`);
    },
    OVERLAY,
  ],
  [
    'the coordinator migrates',
    'ConfigMap/pgbouncer',
    edit('databases.ini', 'worker-2.example.org', 'worker-1.example.org'),
    OVERLAY,
  ],
  [
    'the coordinator migrates',
    'ConfigMap/pgbouncer',
    edit('databases.ini', '"worker-2.example.org" = host=worker-2', '"worker-2.example.org" = host=worker-1'),
    OVERLAY,
  ],
  [
    'sessions have',
    'ConfigMap/pgbouncer',
    edit(
      'databases.ini',
      "=16 connect_query='set statement_timeout = 6000",
      "=16 connect_query='set statement_timeout = 0",
    ),
    OVERLAY,
  ],
  [
    'the coordinator migrates',
    'ConfigMap/settings',
    (_, objects) => objects.push(...readObjects(DUMP)),
    OVERLAY,
  ],
  ['starts with the environment', 'ConfigMap/settings', set('DATABASE_SHARDING', 'cytus'), OVERLAY],
  ['sessions have', 'ConfigMap/pgbouncer', edit('databases.ini', 'jit = off', 'jit = on'), OVERLAY],
  ['knows the databases', 'ConfigMap/pgbouncer', ({ data }) => delete data['databases.ini'], OVERLAY],
  [
    'allow all needed connections',
    'NetworkPolicy/pgbouncer',
    ({ spec }) => (spec.egress[1].to[0].ipBlock.cidr = '10.30.0.0/24'),
    OVERLAY,
  ],
  [
    'allow all needed connections',
    'ConfigMap/pgbouncer',
    edit('databases.ini', 'port=5432', 'port=5433'),
    OVERLAY,
  ],
  [
    'allow all needed connections',
    'ConfigMap/pgbouncer',
    edit('databases.ini', 'worker-2.example.org', 'worker-2.databases'),
    OVERLAY,
  ],
  ['allow all needed connections', 'NetworkPolicy/migrate', remove, OVERLAY],
];
