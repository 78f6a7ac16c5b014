import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildKustomization } from '../k8s/check/kustomize.ts';
import { listOverlays, OVERLAYS_FOLDER } from '../k8s/check/main.ts';
import { type KubernetesObject, nameOf } from '../k8s/check/objects.ts';
import { listMetrics } from '../k8s/check/rules/monitoring.ts';
import { findFaults, RULES } from '../k8s/check/rules.ts';
import { validateObject } from '../k8s/check/schemas.ts';
import { makeFolder, removeFolder } from './support/folders.ts';

type Overlay = 'local' | 'production';

const built = {
  local: buildKustomization(`${OVERLAYS_FOLDER}local`),
  production: buildKustomization(`${OVERLAYS_FOLDER}production`),
};

/** An overlay's objects, to be broken. */
const copy = (overlay: Overlay = 'production') => structuredClone(built[overlay]);

// biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of every kind
function pick(objects: KubernetesObject[], name: string): any {
  const found = objects.find((object) => nameOf(object) === name || nameOf(object).startsWith(`${name}-`));
  if (!found) throw new Error(`there is no ${name}`);
  return found;
}

// biome-ignore lint/suspicious/noExplicitAny: as above
type Break = (object: any, objects: KubernetesObject[]) => void;

const remove = (objects: KubernetesObject[], name: string) =>
  objects.splice(objects.indexOf(pick(objects, name)), 1);

// biome-ignore lint/suspicious/noExplicitAny: as above
const pod = (object: any) => object.spec.template.spec;
// biome-ignore lint/suspicious/noExplicitAny: as above
const container = (object: any) => pod(object).containers[0];

/** Replaces text in a file of a ConfigMap; fails where it is not there. */
const edit =
  (file: string, from: string, to: string): Break =>
  (map) => {
    expect(map.data[file]).toContain(from);
    map.data[file] = map.data[file].replaceAll(from, to);
  };

/** What breaks each rule, by the object that is changed. */
const BREAKS: [rule: string, object: string, change: Break, overlay?: Overlay][] = [
  ['stable', 'HTTPRoute/api', (route) => (route.apiVersion = 'gateway.networking.k8s.io/v1beta1')],
  ['knows every variable', 'ConfigMap/settings', ({ data }) => (data.SYNC_WAIT_SECONDS = '31')],
  ['knows every variable', 'ConfigMap/settings', ({ data }) => (data.MAX_WAITER = '10')],
  ['ports are those', 'ConfigMap/settings', ({ data }) => (data.METRICS_PORT = '9465')],
  ['ports are those', 'Deployment/api', (api) => (container(api).ports[0].containerPort = 8080)],
  [
    'restricted pod security',
    'Deployment/worker',
    (worker) => delete pod(worker).securityContext.runAsNonRoot,
  ],
  ['restricted pod security', 'Deployment/api', (api) => (pod(api).securityContext.runAsUser = 0)],
  ['restricted pod security', 'Job/migrate', (job) => delete pod(job).securityContext.seccompProfile],
  ['restricted pod security', 'Deployment/api', (api) => (pod(api).hostNetwork = true)],
  [
    'restricted pod security',
    'Deployment/api',
    (api) => (pod(api).volumes = [{ name: 'root', hostPath: { path: '/' } }]),
  ],
  ['gain nothing', 'Deployment/api', (api) => delete container(api).securityContext.allowPrivilegeEscalation],
  ['gain nothing', 'Deployment/pgbouncer', (pooler) => (container(pooler).securityContext.capabilities = {})],
  [
    'read-only',
    'StatefulSet/redis',
    (redis) => delete container(redis).securityContext.readOnlyRootFilesystem,
    'local',
  ],
  ['no token of the cluster', 'Deployment/api', (api) => delete pod(api).automountServiceAccountToken],
  [
    'namespace enforces',
    'ServiceAccount/bookmarks',
    (account) => delete account.automountServiceAccountToken,
  ],
  ['namespace enforces', 'Namespace/bookmarks', ({ metadata }) => delete metadata.labels],
  ['requests and limits', 'Deployment/api', (api) => delete container(api).resources.limits.memory],
  ['requests and limits', 'Job/migrate', (job) => delete container(job).resources.requests],
  ['startup, liveness and readiness', 'Deployment/worker', (worker) => delete container(worker).startupProbe],
  [
    'startup, liveness and readiness',
    'StatefulSet/postgres',
    (p) => delete container(p).livenessProbe,
    'local',
  ],
  ['fixed tag', 'StatefulSet/postgres', (postgres) => (container(postgres).image = 'postgres'), 'local'],
  [
    'fixed tag',
    'StatefulSet/postgres',
    (postgres) => (container(postgres).image = 'postgres:latest'),
    'local',
  ],
  [
    'liveness asks the process alone',
    'Deployment/api',
    (api) => (container(api).livenessProbe.httpGet.path = '/readyz'),
  ],
  [
    'liveness asks the process alone',
    'Deployment/api',
    (api) => (container(api).readinessProbe.httpGet.path = '/livez'),
  ],
  [
    'one image',
    'Job/migrate',
    (job) => (container(job).image = 'registry.example.org/bookmark-service:0.9.0'),
  ],
  ['takes no replica away', 'Deployment/api', (api) => (api.spec.strategy.rollingUpdate.maxUnavailable = 1)],
  ['takes no replica away', 'Deployment/api', (api) => (api.spec.strategy = { type: 'Recreate' })],
  ['serves on until balancers', 'Deployment/api', (api) => delete container(api).lifecycle],
  ['serves on until balancers', 'ConfigMap/settings', ({ data }) => (data.DRAIN_SECONDS = '0')],
  ['grace period', 'Deployment/api', (api) => (pod(api).terminationGracePeriodSeconds = 30)],
  [
    'grace period',
    'Deployment/worker',
    (worker) => (pod(worker).terminationGracePeriodSeconds = 20),
    'local',
  ],
  ['grace period', 'ConfigMap/settings', ({ data }) => (data.DRAIN_SECONDS = '40')],
  ['spread over nodes', 'Deployment/api', (api) => pod(api).topologySpreadConstraints.pop()],
  ['disruption budget', 'Deployment/api', (_, objects) => remove(objects, 'PodDisruptionBudget/api')],
  ['disruption budget', 'PodDisruptionBudget/worker', ({ spec }) => (spec.maxUnavailable = 0)],
  ['memory for the polls', 'ConfigMap/settings', ({ data }) => (data.MAX_WAITERS = '100000')],
  ['memory for the polls', 'ConfigMap/settings', ({ data }) => (data.IMPORT_CONCURRENCY = '4')],
  ['migration runs once', 'Job/migrate', (_, objects) => remove(objects, 'Job/migrate')],
  ['migration runs once', 'Job/migrate', (job) => (container(job).args = ['api'])],
  [
    'migration runs once',
    'Job/migrate',
    (job) => (container(job).env[0].valueFrom.secretKeyRef.key = 'DATABASE_URL'),
  ],
  [
    'find what they mean',
    'Service/api',
    ({ spec }) => (spec.selector = { 'app.kubernetes.io/component': 'apy' }),
  ],
  ['find what they mean', 'Service/api', ({ spec }) => (spec.ports[0].targetPort = 'https')],
  ['find what they mean', 'HTTPRoute/api', ({ spec }) => (spec.rules[0].backendRefs[0].port = 8080)],
  ['find what they mean', 'ServiceMonitor/bookmarks', ({ spec }) => (spec.endpoints[0].port = 'prometheus')],
  [
    'find what they mean',
    'Deployment/api',
    (api) => (container(api).env.at(-1).valueFrom.secretKeyRef.name = 'secret'),
  ],
  ['find what they mean', 'ConfigMap/pgbouncer', ({ metadata }) => (metadata.name = 'pooler')],
  [
    'find what they mean',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.podSelector.matchLabels = { 'app.kubernetes.io/component': 'web' }),
  ],
  ['find what they mean', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.scaleTargetRef.name = 'web')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.request = '30s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[0].timeouts.request = '60s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => delete spec.rules[1].timeouts],
  ['route of their own', 'HTTPRoute/api', ({ spec }) => spec.rules.shift()],
  ['route of their own', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].matches[0].path.value = '/')],
  [
    'no Ingress',
    'HTTPRoute/api',
    (_, objects) =>
      objects.push({
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: { name: 'api' },
        spec: { defaultBackend: { service: { name: 'api', port: { number: 80 } } } },
      }),
  ],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.pop()],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.shift()],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.minReplicas = 1)],
  ['autoscaler follows', 'ConfigMap/settings', ({ data }) => (data.MAX_WAITERS = '5000')],
  ['autoscaler follows', 'Deployment/api', ({ spec }) => (spec.replicas = 3)],
  [
    'allows is denied',
    'NetworkPolicy/default-deny',
    (_, objects) => remove(objects, 'NetworkPolicy/default-deny'),
  ],
  ['allows is denied', 'NetworkPolicy/default-deny', ({ spec }) => spec.policyTypes.pop(), 'local'],
  ['opens more', 'NetworkPolicy/requests', ({ spec }) => delete spec.ingress[0].from],
  ['opens more', 'NetworkPolicy/stores', ({ spec }) => delete spec.egress[0].ports],
  ['replicas times pool', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.maxReplicas = 100)],
  ['replicas times pool', 'ConfigMap/settings', ({ data }) => (data.DATABASE_POOL_SIZE = '50')],
  ['fit into Postgres', 'Deployment/pgbouncer', ({ spec }) => (spec.replicas = 4)],
  ['fit into Postgres', 'ConfigMap/pgbouncer', edit('pgbouncer.ini', ' pool_size=6', '')],
  ['pools transactions', 'ConfigMap/pgbouncer', edit('pgbouncer.ini', '= transaction', '= session')],
  ['pools transactions', 'ConfigMap/pgbouncer', edit('pgbouncer.ini', 'max_prepared_statements = 200', '')],
  ['pools transactions', 'Deployment/pgbouncer', (pooler) => (container(pooler).image = 'pgbouncer:1.18.0')],
  [
    'pools transactions',
    'ConfigMap/pgbouncer',
    edit('pgbouncer.ini', '[pgbouncer]', '[pgbouncer]\nignore_startup_parameters = statement_timeout'),
  ],
  ['sessions have', 'ConfigMap/pgbouncer', edit('pgbouncer.ini', 'set statement_timeout = 120000;', '')],
  ['sessions have', 'ConfigMap/settings', ({ data }) => (data.IMPORT_WAIT_SECONDS = '100')],
  ['Redis evicts nothing', 'StatefulSet/redis', (redis) => container(redis).args.splice(1, 2), 'local'],
  [
    'metrics that exist',
    'ConfigMap/dashboard',
    edit('bookmarks.json', 'bookmarks_waiters_limit', 'bookmarks_waiters_max'),
  ],
  [
    'metrics that exist',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[0].rules[0].expr = 'bookmarks_up == 0'),
  ],
  [
    'metrics that exist',
    'HorizontalPodAutoscaler/api',
    ({ spec }) =>
      spec.metrics.push({ type: 'Pods', pods: { ...spec.metrics[1].pods, metric: { name: 'longpolls' } } }),
  ],
  [
    'is on the dashboard',
    'ConfigMap/dashboard',
    edit('bookmarks.json', 'bookmarks_wakes_received_total', 'up'),
  ],
  ['how urgent', 'PrometheusRule/bookmarks', ({ spec }) => delete spec.groups[0].rules[0].labels],
];

test.each(listOverlays())('overlay %s is valid and keeps every rule', async (overlay) => {
  expect(await findFaults(buildKustomization(OVERLAYS_FOLDER + overlay))).toEqual([]);
});

test('every rule has something here that breaks it', () => {
  const unbroken = RULES.filter(({ name }) => !BREAKS.some(([rule]) => name.includes(rule)));
  expect(unbroken.map(({ name }) => name)).toEqual([]);
});

test.each(BREAKS.map(([rule, object, change, overlay], n) => ({ n, rule, object, change, overlay })))(
  'rule "$rule" is seen broken ($n: $object)',
  async ({ rule, object, change, overlay }) => {
    const objects = copy(overlay);
    change(pick(objects, object), objects);
    const faults = await findFaults(objects);
    const named = RULES.find(({ name }) => name.includes(rule))!.name;
    const seen = faults.filter(
      (fault) => fault.startsWith(`${named}: `) && !fault.includes('cannot be checked'),
    );
    expect(seen).not.toEqual([]);
  },
);

test('a field that no schema knows is found at any depth', async () => {
  const places: ((objects: KubernetesObject[]) => object)[] = [
    (objects) => pick(objects, 'Deployment/api'),
    (objects) => pick(objects, 'Deployment/api').metadata,
    (objects) => pod(pick(objects, 'Deployment/api')),
    (objects) => container(pick(objects, 'Deployment/api')).readinessProbe.httpGet,
    (objects) => container(pick(objects, 'Deployment/api')).env.at(-1).valueFrom.secretKeyRef,
    (objects) => pick(objects, 'HTTPRoute/api').spec.rules[2].timeouts,
    (objects) => pick(objects, 'ServiceMonitor/bookmarks').spec.endpoints[0],
    (objects) => pick(objects, 'PrometheusRule/bookmarks').spec.groups[0].rules[3],
    (objects) => pick(objects, 'HorizontalPodAutoscaler/api').spec.behavior.scaleDown,
    (objects) => pick(objects, 'NetworkPolicy/stores').spec.egress[0].ports[0],
    (objects) => pick(objects, 'PodDisruptionBudget/api').spec,
    (objects) => pick(objects, 'Service/api').spec.ports[0],
    (objects) => pick(objects, 'ConfigMap/settings'),
  ];
  for (const place of places) {
    const objects = copy();
    Object.assign(place(objects), { terminationGracePeriodSecond: 60 });
    expect(await findFaults(objects)).toEqual([
      expect.stringMatching(/terminationGracePeriodSecond: unknown field$/),
    ]);
  }
});

test('what its schema forbids is found, and an object without a schema is refused', async () => {
  const [api] = [pick(copy(), 'Deployment/api')];
  container(api).ports[0].containerPort = '3000';
  expect(await validateObject(api)).toEqual([expect.stringContaining('containerPort')]);
  const route = pick(copy(), 'HTTPRoute/api');
  route.spec.rules[0].timeouts.request = '1 minute';
  expect(await validateObject(route)).toEqual([expect.stringContaining('timeouts/request')]);
  const budget = pick(copy(), 'PodDisruptionBudget/api');
  budget.apiVersion = 'policy/v2';
  await expect(validateObject(budget)).rejects.toThrow('no schema of policy/v2 PodDisruptionBudget');
});

test('metrics are found in expressions of every form that is used', () => {
  expect(
    listMetrics(
      'histogram_quantile(0.99, sum by (le, route) (rate(a_seconds_bucket{route!~"x|b_total"}[$__rate_interval]))) / max(c) > 1 and absent(up{job="api"})',
    ),
  ).toEqual(['a_seconds', 'c', 'up']);
  expect(listMetrics('count(count by (version) (build_info)) > 1')).toEqual(['build_info']);
});

/** Writes a kustomization into a folder of the test's own. */
function writeKustomization(files: Record<string, string>): string {
  const folder = makeFolder('kustomization');
  onTestFinished(() => removeFolder(folder));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const POD =
  'apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n    - {name: a, image: "x:1"}\n';

test('the builder refuses what it does not know how to build', () => {
  const refused: [text: string, message: string][] = [
    ['namePrefix: x', 'namePrefix is not supported'],
    ['patches: [{path: p.yaml}]', 'patches: path is not supported'],
    ['images: [{name: x, digest: y}]', 'images: digest is not supported'],
    ['patches: [{target: {kind: Pod, name: q}, patch: "{}"}]', 'no target Pod/q'],
    ['patches: [{target: {kind: Pod, name: p}, patch: "$patch: delete"}]', '$patch is not supported'],
    [
      'patches: [{target: {kind: Pod, name: p}, patch: "spec: {tolerations: [{key: x}]}"}]',
      'use a JSON patch',
    ],
    [
      'patches: [{target: {kind: Pod, name: p}, patch: "[{op: test, path: /spec}]"}]',
      'test is not supported',
    ],
    [
      'patches: [{target: {kind: Pod, name: p}, patch: "[{op: remove, path: /status}]"}]',
      'there is no /status',
    ],
  ];
  for (const [text, message] of refused) {
    const folder = writeKustomization({
      'kustomization.yaml': `resources: [p.yaml]\n${text}`,
      'p.yaml': POD,
    });
    expect(() => buildKustomization(folder), text).toThrow(message);
  }
  const doubled = writeKustomization({ 'kustomization.yaml': 'resources: [p.yaml, p.yaml]', 'p.yaml': POD });
  expect(() => buildKustomization(doubled)).toThrow('Pod/p stands twice');
});

test('patches change what they name, and nothing else', () => {
  const folder = writeKustomization({
    'p.yaml': POD,
    'kustomization.yaml': `
resources: [p.yaml]
namespace: n
images: [{name: x, newName: y, newTag: "2"}]
patches:
  - target: {kind: Pod, name: p}
    patch: '{spec: {hostname: h, containers: [{name: a, args: [b]}, {name: c, image: "z:1"}]}}'
  - target: {kind: Pod, name: p}
    patch: '[{op: add, path: /metadata/labels, value: {k: v}}, {op: add, path: /spec/containers/1/args/-, value: d}, {op: remove, path: /spec/hostname}]'
`,
  });
  expect(buildKustomization(folder)).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'n', labels: { k: 'v' } },
      spec: {
        containers: [
          { name: 'c', image: 'z:1' },
          { name: 'a', image: 'y:2', args: ['b', 'd'] },
        ],
      },
    },
  ]);
});

test('a changed setting gives the ConfigMap another name, in every mention', () => {
  const workload = POD.replace('image: "x:1"', 'image: "x:1", envFrom: [{configMapRef: {name: s}}]');
  const build = (literal: string) =>
    buildKustomization(
      writeKustomization({
        'base/kustomization.yaml': 'resources: [p.yaml]',
        'base/p.yaml': workload,
        'kustomization.yaml': `resources: [base]\nconfigMapGenerator: [{name: s, literals: [${literal}]}]`,
      }),
    );
  // The hash is kustomize's own.
  expect(build('x=1')[1]!.metadata.name).toBe('s-hmg6f82fh6');
  const [pod, map] = build('x=2');
  expect(map!.metadata.name).not.toBe('s-hmg6f82fh6');
  expect(pod!.spec.containers[0].envFrom[0].configMapRef.name).toBe(map!.metadata.name);
});
