import { type Breakage, container, edit, pick, pod, remove, variable } from '../overlay-copy.ts';

/** Mistakes in references: names, keys, ports and files that do not exist. */
export const REFERENCES: Breakage[] = [
  ['stable', 'HTTPRoute/api', (route) => (route.apiVersion = 'gateway.networking.k8s.io/v1beta1')],
  [
    'references match existing',
    'Service/api',
    ({ spec }) => (spec.selector = { 'app.kubernetes.io/component': 'apy' }),
  ],
  [
    'references match existing',
    'Service/api',
    ({ spec }) => (spec.selector = { 'app.kubernetes.io/name': 'bookmarks' }),
  ],
  ['references match existing', 'Service/api', ({ spec }) => (spec.ports[0].targetPort = 'https')],
  ['references match existing', 'HTTPRoute/api', ({ spec }) => (spec.rules[0].backendRefs[0].port = 8080)],
  ['references match existing', 'HTTPRoute/api', ({ spec }) => delete spec.parentRefs[0].sectionName],
  ['references match existing', 'HTTPRoute/api', ({ spec }) => delete spec.parentRefs[0].namespace],
  ['references match existing', 'HTTPRoute/api', ({ spec }) => delete spec.hostnames],
  [
    'references match existing',
    'ServiceMonitor/bookmarks',
    ({ spec }) => (spec.endpoints[0].port = 'prometheus'),
  ],
  [
    'references match existing',
    'ServiceMonitor/pgbouncer',
    ({ spec }) => (spec.selector.matchLabels = { 'app.kubernetes.io/name': 'pooler' }),
  ],
  [
    'references match existing',
    'Deployment/api',
    (api) => (variable(api, 'REDIS_URL').valueFrom.secretKeyRef.name = 'secret'),
  ],
  [
    'references match existing',
    'Deployment/api',
    (api) =>
      (variable(api, 'DATABASE_IMPORT_URL').valueFrom.secretKeyRef = {
        name: 'connections',
        key: 'DATABASE_IMPORTS_URL',
      }),
  ],
  [
    'references match existing',
    'Deployment/worker',
    (worker) => (variable(worker, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'DATABASE_ULR'),
  ],
  [
    'references match existing',
    'Secret/connections',
    ({ stringData }) => Object.assign(stringData, { REDIS_CA_FILE: '/etc/redis/ca.crt' }),
  ],
  [
    'references match existing',
    'Secret/connections',
    ({ stringData }) => Object.assign(stringData, { REDIS_CA_FILE: '/etc/ca.crt', 'redis-ca.crt': 'PEM' }),
  ],
  ['references match existing', 'Job/migrate', (job) => (pod(job).serviceAccountName = 'bookmark')],
  ['references match existing', 'Job/migrate', (job) => (pod(job).volumes[0].secret.items[0].key = 'ca.pem')],
  [
    'references match existing',
    'Job/migrate',
    (job) => (container(job).volumeMounts[0].mountPath = '/etc/postgresql'),
  ],
  ['references match existing', 'Job/migrate', (job) => (container(job).volumeMounts[0].name = 'ca')],
  [
    'references match existing',
    'Secret/connections',
    edit('MIGRATE_DATABASE_URL', '/etc/postgres/ca.crt', '/etc/ssl/ca.crt'),
  ],
  [
    'references match existing',
    'Deployment/api',
    (api) => (container(api).readinessProbe.httpGet.port = 'htpp'),
  ],
  [
    'references match existing',
    'Deployment/pgbouncer',
    (pooler) => (container(pooler).livenessProbe.tcpSocket.port = 5432),
  ],
  [
    'references match existing',
    'Deployment/pgbouncer',
    (pooler) => (pod(pooler).containers[1].livenessProbe.httpGet.port = 'postgres'),
  ],
  [
    'references match existing',
    'Deployment/pgbouncer',
    (pooler) => container(pooler).command.splice(1, 1, '/etc/pgbouncer/pgbouncer.ini'),
  ],
  ['references match existing', 'ConfigMap/pgbouncer', ({ metadata }) => (metadata.name = 'pooler')],
  [
    'references match existing',
    'ConfigMap/settings',
    ({ metadata }) => (metadata.name = 'setting-abcdefghij'),
  ],
  ['references match existing', 'StatefulSet/redis', ({ spec }) => (spec.serviceName = 'cache'), 'local'],
  [
    'references match existing',
    'Deployment/worker',
    (worker) =>
      (pod(worker).topologySpreadConstraints[0].labelSelector.matchLabels = {
        'app.kubernetes.io/component': 'api',
      }),
  ],
  [
    'references match existing',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.podSelector.matchLabels = { 'app.kubernetes.io/component': 'web' }),
  ],
  [
    'references match existing',
    'PodDisruptionBudget/api',
    ({ spec }) => (spec.selector.matchLabels = { 'app.kubernetes.io/name': 'bookmarks' }),
  ],
  [
    'references match existing',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.scaleTargetRef.name = 'web'),
  ],
  ['one namespace', 'Deployment/api', ({ metadata }) => (metadata.namespace = 'bookmark')],
  ['one namespace', 'Namespace/bookmarks', remove],
  ['one namespace', 'Secret/connections', ({ metadata }) => (metadata.namespace = 'default')],
  [
    'changed setting restarts',
    'ConfigMap/settings',
    ({ metadata }, objects) => {
      for (const name of ['Deployment/api', 'Deployment/worker', 'Job/migrate'])
        container(pick(objects, name)).envFrom[0].configMapRef.name = 'settings';
      metadata.name = 'settings';
    },
  ],
  [
    'changed setting restarts',
    'ConfigMap/dashboard',
    ({ metadata }) => (metadata.name = 'dashboard-abcdefghij'),
  ],
  ['changed setting restarts', 'ConfigMap/dashboard', ({ metadata }) => delete metadata.labels],
  ['both roles exist', 'Deployment/worker', (worker) => (container(worker).args = ['api'])],
  ['both roles exist', 'ServiceMonitor/bookmarks', ({ spec }) => delete spec.jobLabel],
  ['both roles exist', 'Service/worker', remove],
];
