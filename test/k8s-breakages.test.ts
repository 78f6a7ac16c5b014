import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readObjects } from '../k8s/check/kustomize.ts';
import type { KubernetesObject } from '../k8s/check/objects.ts';
import { checkRules } from '../k8s/check/promtool.ts';
import { findFaults, RULES } from '../k8s/check/rules.ts';
import { PUBLIC_PATHS } from '../src/http/public-paths.ts';
import {
  type AnyObject,
  container,
  copyOverlay,
  type Overlay,
  pick,
  pod,
  variable,
} from './k8s/overlay-copy.ts';
import { provide } from './support/programs.ts';

/** Possible mistakes in the manifests. Each violates a rule, and the check must report that rule. */

/** A function that changes an overlay. Its first argument is the object that the breakage names. */
type Change = (object: AnyObject, objects: KubernetesObject[]) => void;

/** Removes the object. */
const remove: Change = (object, objects) => {
  objects.splice(objects.indexOf(object), 1);
};

/** Makes a change that replaces text in a file of a ConfigMap or Secret. The change throws if the text is missing. */
const edit =
  (file: string, from: string, to: string): Change =>
  (object) => {
    const texts = object.stringData ?? object.data;
    expect(texts[file]).toContain(from);
    texts[file] = texts[file].replaceAll(from, to);
  };

/** Makes a change that sets a variable of the service. */
const set =
  (name: string, value: string): Change =>
  ({ data }) => {
    data[name] = value;
  };

const alertOf = ({ spec }: AnyObject) => spec.groups[1].rules[0];

/** Mistakes in objects of an overlay, which is `production` unless another one is named. */
const BREAKAGES: Record<string, [object: string, change: Change, overlay?: Overlay][]> = {
  'pods are restricted': [
    ['Deployment/api', (api) => delete pod(api).securityContext.runAsNonRoot],
    ['Deployment/pgbouncer', (pooler) => delete pod(pooler).containers[1].securityContext],
    ['Deployment/worker', (worker) => (container(worker).securityContext.readOnlyRootFilesystem = false)],
  ],
  'containers have requests': [
    ['Deployment/api', (api) => delete container(api).resources.limits.memory],
    ['Deployment/worker', (worker) => (container(worker).resources.requests.cpu = '2500m')],
  ],
  'servers have probes': [
    ['Deployment/api', (api) => (container(api).livenessProbe.httpGet.path = '/readyz')],
    ['StatefulSet/postgres', (postgres) => delete container(postgres).livenessProbe, 'local'],
  ],
  'can read its mounted files': [['Deployment/pgbouncer', (p) => delete pod(p).securityContext.fsGroup]],
  'fixed tag': [['StatefulSet/postgres', (p) => (container(p).image = 'postgres:latest'), 'local']],
  'the namespace enforces': [
    ['Namespace/bookmarks', ({ metadata }) => delete metadata.labels],
    ['NetworkPolicy/default-deny', ({ spec }) => spec.policyTypes.pop()],
  ],
  'one image': [['Job/migrate', (job) => (container(job).image = 'bookmark-service:0.9.0')]],
  'knows every variable': [
    ['ConfigMap/settings', set('SYNC_WAIT_SECONDS', '31')],
    ['ConfigMap/settings', set('MAX_WAITER', '10')],
    ['Deployment/api', (api) => container(api).env.push({ name: 'NODE_OPTION', value: '' })],
  ],
  'ports are those': [['ConfigMap/settings', set('METRICS_PORT', '9465')]],
  'listens where other pods': [
    ['ConfigMap/settings', set('HOST', '127.0.0.1')],
    ['ConfigMap/settings', ({ data }) => delete data.NODE_ENV],
  ],
  'share one Redis': [
    ['Deployment/worker', (w) => container(w).env.push({ name: 'REDIS_PREFIX', value: 'other' })],
  ],
  'only the gateway may name': [
    ['ConfigMap/settings', set('TRUST_PROXY', '10.1.2.0/24, 10.1.0.0/23')],
    ['ConfigMap/settings', set('TRUST_PROXY', 'uniquelocal')],
    ['ConfigMap/settings', ({ data }) => delete data.TRUST_PROXY],
    ['ConfigMap/settings', set('TRUST_PROXY', '5')],
  ],
  'as it was built': [
    ['Deployment/api', (api) => container(api).env.push({ name: 'NODE_OPTIONS', value: '--inspect' })],
    [
      'Deployment/api',
      (api) => container(api).env.push({ name: 'NODE_OPTIONS', value: '--max-old-space-size=1900' }),
    ],
  ],
  'ending api pod serves': [
    ['Deployment/api', (api) => delete container(api).lifecycle],
    ['ConfigMap/settings', set('DRAIN_SECONDS', '0')],
  ],
  'grace period': [
    ['Deployment/api', (api) => (pod(api).terminationGracePeriodSeconds = 30)],
    ['Deployment/pgbouncer', (pooler) => (pod(pooler).terminationGracePeriodSeconds = 10)],
    ['Deployment/api', (api) => (pod(api).terminationGracePeriodSeconds = 55), 'production-aws'],
  ],
  'disconnects its clients': [['Deployment/pgbouncer', (pooler) => delete container(pooler).lifecycle]],
  'spread over nodes': [['Deployment/api', (api) => pod(api).topologySpreadConstraints.pop()]],
  'disruption budget': [
    ['PodDisruptionBudget/api', remove],
    ['PodDisruptionBudget/api', ({ spec }) => (spec.maxUnavailable = '100%')],
    ['PodDisruptionBudget/worker', ({ spec }) => (spec.maxUnavailable = 0)],
  ],
  'memory for the polls': [
    ['ConfigMap/settings', set('MAX_WAITERS', '100000')],
    ['ConfigMap/settings', set('IMPORT_CONCURRENCY', '4')],
  ],
  'starts new pods before': [
    ['Deployment/api', ({ spec }) => (spec.strategy.rollingUpdate.maxUnavailable = 1)],
    ['Deployment/worker', ({ spec }) => (spec.strategy = { type: 'Recreate' })],
  ],
  'migration completes before': [
    ['Job/migrate', remove],
    ['Job/migrate', (job) => (variable(job, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'DATABASE_URL')],
    ['Job/migrate', ({ spec }) => (spec.activeDeadlineSeconds = 300)],
  ],
  stable: [['HTTPRoute/api', (route) => (route.apiVersion = 'gateway.networking.k8s.io/v1beta1')]],
  'references match existing': [
    ['Service/api', ({ spec }) => (spec.selector = { 'app.kubernetes.io/component': 'apy' })],
    ['Service/api', ({ spec }) => (spec.ports[0].targetPort = 'https')],
    ['HTTPRoute/api', ({ spec }) => (spec.rules[0].backendRefs[0].port = 8080)],
    ['HTTPRoute/api', ({ spec }) => delete spec.parentRefs[0].sectionName],
    ['ServiceMonitor/bookmarks', ({ spec }) => (spec.endpoints[0].port = 'prometheus')],
    ['Deployment/api', (api) => (variable(api, 'REDIS_URL').valueFrom.secretKeyRef.name = 'secret')],
    ['Deployment/worker', (w) => (variable(w, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'DATABASE_ULR')],
    ['Secret/connections', edit('MIGRATE_DATABASE_URL', '/etc/postgres/ca.crt', '/etc/ssl/ca.crt')],
    ['Secret/connections', edit('DATABASE_URL', '@pgbouncer:', '@pooler:')],
    ['Secret/connections', edit('DATABASE_URL', ':6432', ':5432')],
    ['Deployment/api', (api) => (container(api).readinessProbe.httpGet.port = 'htpp')],
    ['ConfigMap/settings', ({ metadata }) => (metadata.name = 'setting-abcdefghij')],
    ['StatefulSet/redis', ({ spec }) => (spec.serviceName = 'cache'), 'local'],
    ['NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].port = 80)],
    ['NetworkPolicy/stores', ({ spec }) => (spec.egress[0].ports[0].port = 5432)],
    [
      'NetworkPolicy/pgbouncer',
      ({ spec }) => (spec.ingress[0].from[0].podSelector = { matchLabels: { a: 'b' } }),
    ],
    ['HorizontalPodAutoscaler/api', ({ spec }) => (spec.scaleTargetRef.name = 'web')],
    ['PersistentVolumeClaim/backups', remove, 'production with backups'],
  ],
  'one namespace': [['Secret/connections', ({ metadata }) => (metadata.namespace = 'default')]],
  'changed setting restarts': [
    ['ConfigMap/dashboard', ({ metadata }) => (metadata.name = 'dashboard-abcdefghij')],
    ['ConfigMap/pgbouncer', ({ metadata }) => (metadata.name = 'pooler')],
  ],
  'both roles exist': [
    ['Deployment/worker', (worker) => (container(worker).args = ['api'])],
    ['ServiceMonitor/bookmarks', ({ spec }) => delete spec.jobLabel],
  ],
  "route's timeouts": [
    ['HTTPRoute/api', ({ spec }) => (spec.rules[0].timeouts.request = '60s')],
    ['HTTPRoute/api', ({ spec }) => delete spec.rules[1].timeouts],
    ['HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.backendRequest = '15s')],
    ['GCPBackendPolicy/api', ({ spec }) => (spec.default.timeoutSec = 30), 'production-google'],
    ['GCPBackendPolicy/api', remove, 'production-google'],
  ],
  'host of the route': [['ConfigMap/settings', set('PUBLIC_URL', 'https://other.example.org')]],
  'all public paths have a route': [
    ['HTTPRoute/api', ({ spec }) => spec.rules.shift()],
    ['HTTPRoute/api', ({ spec }) => (spec.rules[2].matches[0].path.value = '/')],
    ['HTTPRoute/api', ({ spec }) => spec.rules.pop()],
  ],
  'autoscaler follows': [
    ['HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.pop()],
    ['HorizontalPodAutoscaler/api', ({ spec }) => (spec.metrics[0].resource.target.averageValue = '1500m')],
    ['ConfigMap/settings', set('MAX_WAITERS', '5000')],
    ['Deployment/api', ({ spec }) => (spec.replicas = 3)],
  ],
  'replicas times pool': [['ConfigMap/settings', set('DATABASE_POOL_SIZE', '50')]],
  'fit into Postgres': [
    ['Deployment/pgbouncer', ({ spec }) => (spec.replicas = 4)],
    ['ConfigMap/pgbouncer', edit('databases.ini', ' max_db_connections=20', '')],
  ],
  "pooler's settings": [
    ['ConfigMap/pgbouncer', edit('pgbouncer.ini', '= transaction', '= session')],
    ['ConfigMap/pgbouncer', edit('pgbouncer.ini', 'verify-full', 'require')],
    ['ConfigMap/pgbouncer', edit('pgbouncer.ini', 'dns_max_ttl = 1\n', '')],
    ['ConfigMap/pgbouncer', edit('pgbouncer.ini', 'log_connections = 0', 'query_timeout = 1')],
    ['ConfigMap/pgbouncer', edit('databases.ini', 'pool_size=20', 'pool_size=1')],
    ['Deployment/pgbouncer', (pooler) => (container(pooler).image = 'pgbouncer:1.18.0')],
  ],
  'sessions have': [
    ['ConfigMap/pgbouncer', edit('databases.ini', 'lock_timeout = 3000', 'lock_timeout = 30000')],
    ['ConfigMap/pgbouncer', edit('databases.ini', 'set bytea_output = hex;', '')],
    ['ConfigMap/settings', set('IMPORT_WAIT_SECONDS', '100')],
  ],
  'the pooler listens on': [
    ['ConfigMap/pgbouncer', edit('pgbouncer.ini', 'listen_port = 6432', 'listen_port = 5432')],
    ['Secret/pgbouncer', edit('userlist.txt', '"bookmarks_a"', '"bookmarks"')],
    ['Secret/connections', edit('DATABASE_IMPORT_URL', '/bookmarks_import', '/bookmarks')],
  ],
  'files are mounted': [['ConfigMap/pgbouncer', edit('pgbouncer.ini', 'secret/ca.crt', 'config/ca.crt')]],
  'owns nothing': [
    ['Secret/connections', edit('MIGRATE_DATABASE_URL', 'bookmarks_owner', 'bookmarks_a')],
    ['Secret/connections', edit('REDIS_URL', 'rediss', 'redis')],
  ],
  'Redis evicts nothing': [['StatefulSet/redis', (redis) => container(redis).args.splice(1, 2), 'local']],
  'metrics that exist': [
    ['ConfigMap/dashboard', edit('bookmarks.json', 'bookmarks_waiters_limit', 'bookmarks_waiters_max')],
    ['PrometheusRule/bookmarks', ({ spec }) => spec.groups[0].rules.shift()],
  ],
  'on the dashboard': [
    ['ConfigMap/dashboard', edit('bookmarks.json', 'bookmarks_wakes_received_total', 'up')],
  ],
  'every alert has a severity': [
    ['PrometheusRule/bookmarks', (rule) => delete alertOf(rule).labels],
    ['PrometheusRule/bookmarks', (rule) => (alertOf(rule).expr = 'sum(up) == 0')],
  ],
  'serves each pod metric': [
    [
      'HorizontalPodAutoscaler/api',
      ({ spec }) => (spec.metrics[1].pods.metric.name = 'bookmarks_waiters_limit'),
    ],
  ],
  'scheduled backup': [
    [
      'Secret/connections',
      edit('BACKUP_DATABASE_URL', 'bookmarks_backup', 'bookmarks_owner'),
      'production with backups',
    ],
    [
      'CronJob/backup',
      ({ spec }) => (spec.jobTemplate.spec.template.spec.volumes[2] = { name: 'backups', emptyDir: {} }),
      'production with backups',
    ],
  ],
  'the coordinator migrates': [
    [
      'Job/migrate',
      (job) => container(job).env.push({ name: 'DATABASE_SHARDING', value: 'none' }),
      'production-citus',
    ],
    [
      'Secret/connections',
      edit('MIGRATE_DATABASE_URL', ':5432', ':5432,worker-1.example.org:5432'),
      'production-citus',
    ],
    [
      'ConfigMap/pgbouncer',
      edit(
        'databases.ini',
        '"worker-2.example.org" = host=worker-2',
        '"worker-2.example.org" = host=worker-1',
      ),
      'production-citus',
    ],
  ],
};

test('every rule has at least one mistake that violates it', () => {
  const unbroken = RULES.filter(({ name }) => !Object.keys(BREAKAGES).some((rule) => name.includes(rule)));
  expect(unbroken.map(({ name }) => name)).toEqual([]);
});

test.each(Object.entries(BREAKAGES))('rule "%s" reports its mistakes', async (rule, breakages) => {
  const { name } = RULES.find((candidate) => candidate.name.includes(rule))!;
  for (const [object, change, overlay] of breakages) {
    const objects = copyOverlay(overlay);
    change(pick(objects, object), objects);
    const faults = await findFaults(objects);
    expect(
      faults.filter((fault) => fault.startsWith(`${name}: `)),
      `${object}: ${change}`,
    ).not.toEqual([]);
  }
});

/** Changes that are correct, but that an overly strict check would refuse. */
const RIGHT: [what: string, object: string, change: Change][] = [
  ['a disruption budget in per cent', 'PodDisruptionBudget/api', ({ spec }) => (spec.maxUnavailable = '50%')],
  [
    'a heap of three quarters of the memory limit',
    'Deployment/api',
    (api) => container(api).env.push({ name: 'NODE_OPTIONS', value: '--max-old-space-size=1536' }),
  ],
  [
    "the gateway's own addresses",
    'ConfigMap/settings',
    set('TRUST_PROXY', '10.1.2.3, 10.1.4.0/24, 2001:db8::/64'),
  ],
  ['a port given by name', 'NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].port = 'http')],
  [
    'a private certificate authority for Redis',
    'Secret/connections',
    ({ stringData }) =>
      Object.assign(stringData, { REDIS_CA_FILE: '/etc/redis/ca.crt', 'redis-ca.crt': 'PEM' }),
  ],
];

test.each(RIGHT)('%s is accepted', async (_, object, change) => {
  const objects = copyOverlay();
  change(pick(objects, object), objects);
  expect(await findFaults(objects)).toEqual([]);
});

test('the example of signing in through a provider is valid', async () => {
  const example = readObjects(readFileSync('k8s/overlays/production/sign-in.example.yaml', 'utf8'));
  expect(await findFaults([...copyOverlay(), ...example])).toEqual([]);
});

test.each(['production', 'production-aws', 'production-citus', 'production-google'] as const)(
  'every public path of %s without a route is reported by its name',
  (overlay) => {
    const { exact, below } = PUBLIC_PATHS;
    for (const path of [...exact, ...below]) {
      const objects = copyOverlay(overlay);
      for (const rule of pick(objects, 'HTTPRoute/api').spec.rules)
        rule.matches = rule.matches.filter((match: { path: { value: string } }) => match.path.value !== path);
      const reported = RULES.flatMap(({ name, check }) =>
        name.startsWith('all public paths') ? check(objects) : [],
      );
      expect(reported).toEqual([expect.stringContaining(`nothing leads to ${path}`)]);
    }
  },
);

test('promtool finds wrong expressions and alerts that fire late', async () => {
  await provide('promtool');
  const broken: [string, Change][] = [
    ['PrometheusRule/bookmarks', (rule) => (alertOf(rule).expr = 'sum by (namespace) up')],
    ['ConfigMap/dashboard', edit('bookmarks.json', 'sum by (pod) (', 'sum by pod (')],
    [
      'PrometheusRule/bookmarks',
      ({ spec }) => {
        const rules: { alert: string; for?: string }[] = spec.groups[1].rules;
        rules.find(({ alert }) => alert === 'BookmarksDatabaseUnreachable')!.for = '5m';
      },
    ],
  ];
  for (const [object, change] of broken) {
    const objects = copyOverlay();
    change(pick(objects, object), objects);
    expect(checkRules(objects)).toEqual([expect.stringContaining('promtool')]);
  }
});
