import { type Breakage, container, edit, pick, pod, remove, variable } from '../overlay-copy.ts';

/** Mistakes about names, keys, ports and files that must be there. */
export const REFERENCES: Breakage[] = [
  ['stable', 'HTTPRoute/api', (route) => (route.apiVersion = 'gateway.networking.k8s.io/v1beta1')],
  [
    'find what they mean',
    'Service/api',
    ({ spec }) => (spec.selector = { 'app.kubernetes.io/component': 'apy' }),
  ],
  [
    'find what they mean',
    'Service/api',
    ({ spec }) => (spec.selector = { 'app.kubernetes.io/name': 'bookmarks' }),
  ],
  ['find what they mean', 'Service/api', ({ spec }) => (spec.ports[0].targetPort = 'https')],
  ['find what they mean', 'HTTPRoute/api', ({ spec }) => (spec.rules[0].backendRefs[0].port = 8080)],
  ['find what they mean', 'HTTPRoute/api', ({ spec }) => delete spec.parentRefs[0].sectionName],
  ['find what they mean', 'HTTPRoute/api', ({ spec }) => delete spec.parentRefs[0].namespace],
  ['find what they mean', 'HTTPRoute/api', ({ spec }) => delete spec.hostnames],
  ['find what they mean', 'ServiceMonitor/bookmarks', ({ spec }) => (spec.endpoints[0].port = 'prometheus')],
  [
    'find what they mean',
    'ServiceMonitor/pgbouncer',
    ({ spec }) => (spec.selector.matchLabels = { 'app.kubernetes.io/name': 'pooler' }),
  ],
  [
    'find what they mean',
    'Deployment/api',
    (api) => (variable(api, 'REDIS_URL').valueFrom.secretKeyRef.name = 'secret'),
  ],
  [
    'find what they mean',
    'Deployment/api',
    (api) =>
      (variable(api, 'DATABASE_IMPORT_URL').valueFrom.secretKeyRef = {
        name: 'connections',
        key: 'DATABASE_IMPORTS_URL',
      }),
  ],
  [
    'find what they mean',
    'Deployment/worker',
    (worker) => (variable(worker, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'DATABASE_ULR'),
  ],
  [
    'find what they mean',
    'Secret/connections',
    ({ stringData }) => Object.assign(stringData, { REDIS_CA_FILE: '/etc/redis/ca.crt' }),
  ],
  [
    'find what they mean',
    'Secret/connections',
    ({ stringData }) => Object.assign(stringData, { REDIS_CA_FILE: '/etc/ca.crt', 'redis-ca.crt': 'PEM' }),
  ],
  ['find what they mean', 'Job/migrate', (job) => (pod(job).serviceAccountName = 'bookmark')],
  ['find what they mean', 'Job/migrate', (job) => (pod(job).volumes[0].secret.items[0].key = 'ca.pem')],
  [
    'find what they mean',
    'Job/migrate',
    (job) => (container(job).volumeMounts[0].mountPath = '/etc/postgresql'),
  ],
  ['find what they mean', 'Job/migrate', (job) => (container(job).volumeMounts[0].name = 'ca')],
  [
    'find what they mean',
    'Secret/connections',
    edit('MIGRATE_DATABASE_URL', '/etc/postgres/ca.crt', '/etc/ssl/ca.crt'),
  ],
  ['find what they mean', 'Deployment/api', (api) => (container(api).readinessProbe.httpGet.port = 'htpp')],
  [
    'find what they mean',
    'Deployment/pgbouncer',
    (pooler) => (container(pooler).livenessProbe.tcpSocket.port = 5432),
  ],
  [
    'find what they mean',
    'Deployment/pgbouncer',
    (pooler) => (pod(pooler).containers[1].livenessProbe.httpGet.port = 'postgres'),
  ],
  [
    'find what they mean',
    'Deployment/pgbouncer',
    (pooler) => container(pooler).command.splice(1, 1, '/etc/pgbouncer/pgbouncer.ini'),
  ],
  ['find what they mean', 'ConfigMap/pgbouncer', ({ metadata }) => (metadata.name = 'pooler')],
  ['find what they mean', 'ConfigMap/settings', ({ metadata }) => (metadata.name = 'setting-abcdefghij')],
  ['find what they mean', 'StatefulSet/redis', ({ spec }) => (spec.serviceName = 'cache'), 'local'],
  [
    'find what they mean',
    'Deployment/worker',
    (worker) =>
      (pod(worker).topologySpreadConstraints[0].labelSelector.matchLabels = {
        'app.kubernetes.io/component': 'api',
      }),
  ],
  [
    'find what they mean',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.podSelector.matchLabels = { 'app.kubernetes.io/component': 'web' }),
  ],
  [
    'find what they mean',
    'PodDisruptionBudget/api',
    ({ spec }) => (spec.selector.matchLabels = { 'app.kubernetes.io/name': 'bookmarks' }),
  ],
  ['find what they mean', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.scaleTargetRef.name = 'web')],
  ['one namespace', 'Deployment/api', ({ metadata }) => (metadata.namespace = 'bookmark')],
  ['one namespace', 'Namespace/bookmarks', remove],
  ['one namespace', 'Secret/connections', ({ metadata }) => (metadata.namespace = 'default')],
  [
    'changed setting rolls',
    'ConfigMap/settings',
    ({ metadata }, objects) => {
      for (const name of ['Deployment/api', 'Deployment/worker', 'Job/migrate'])
        container(pick(objects, name)).envFrom[0].configMapRef.name = 'settings';
      metadata.name = 'settings';
    },
  ],
  [
    'changed setting rolls',
    'ConfigMap/dashboard',
    ({ metadata }) => (metadata.name = 'dashboard-abcdefghij'),
  ],
  ['changed setting rolls', 'ConfigMap/dashboard', ({ metadata }) => delete metadata.labels],
  ['both roles are there', 'Deployment/worker', (worker) => (container(worker).args = ['api'])],
  ['both roles are there', 'ServiceMonitor/bookmarks', ({ spec }) => delete spec.jobLabel],
  ['both roles are there', 'Service/worker', remove],
];
