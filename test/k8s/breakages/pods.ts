import { type Breakage, container, pod } from '../overlay-copy.ts';

/** Mistakes about what pods may do, and what they are given. */
export const PODS: Breakage[] = [
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
  ['gain nothing', 'Deployment/pgbouncer', (pooler) => delete pod(pooler).containers[1].securityContext],
  ['gain nothing', 'Deployment/api', (api) => (container(api).securityContext.privileged = true)],
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
  ['requests are at most', 'Deployment/api', (api) => (container(api).resources.requests.memory = '3Gi')],
  [
    'requests are at most',
    'Deployment/worker',
    (worker) => (container(worker).resources.requests.cpu = '2500m'),
  ],
  [
    'requests are at most',
    'Deployment/pgbouncer',
    (pooler) => (pod(pooler).containers[1].resources.requests.memory = '1Gi'),
  ],
  ['startup, liveness and readiness', 'Deployment/worker', (worker) => delete container(worker).startupProbe],
  [
    'startup, liveness and readiness',
    'StatefulSet/postgres',
    (p) => delete container(p).livenessProbe,
    'local',
  ],
  ['probes leave time', 'Deployment/api', (api) => (container(api).livenessProbe.failureThreshold = 1)],
  ['probes leave time', 'Deployment/api', (api) => (container(api).livenessProbe.timeoutSeconds = 60)],
  ['probes leave time', 'Deployment/api', (api) => (container(api).startupProbe.failureThreshold = 3)],
  ['probes leave time', 'Deployment/api', (api) => (container(api).readinessProbe.failureThreshold = 100)],
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
  [
    'one image',
    'Deployment/api',
    (api) => (pod(api).initContainers[0].image = 'bookmark-service:old'),
    'local',
  ],
];
