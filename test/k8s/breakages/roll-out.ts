import { type Breakage, container, pod, remove, set, variable } from '../overlay-copy.ts';

/** Mistakes about roll-outs, ends of pods and the migration. */
export const ROLL_OUT: Breakage[] = [
  ['takes no replica away', 'Deployment/api', (api) => (api.spec.strategy.rollingUpdate.maxUnavailable = 1)],
  ['takes no replica away', 'Deployment/api', (api) => (api.spec.strategy = { type: 'Recreate' })],
  [
    'takes no replica away',
    'Deployment/worker',
    (worker) => (worker.spec.strategy.rollingUpdate.maxSurge = 0),
  ],
  ['can be undone', 'Deployment/api', (api) => (api.spec.revisionHistoryLimit = 0)],
  ['can be undone', 'Deployment/api', (api) => (api.spec.progressDeadlineSeconds = 5)],
  ['can be undone', 'Deployment/worker', (worker) => (worker.spec.paused = true)],
  ['serves on until balancers', 'Deployment/api', (api) => delete container(api).lifecycle],
  [
    'serves on until balancers',
    'Deployment/api',
    (api) => (container(api).lifecycle.preStop.sleep.seconds = 1),
  ],
  ['serves on until balancers', 'ConfigMap/settings', set('DRAIN_SECONDS', '0')],
  ['grace period', 'Deployment/api', (api) => (pod(api).terminationGracePeriodSeconds = 30)],
  ['grace period', 'Deployment/api', (api) => (container(api).lifecycle.preStop.sleep.seconds = 45)],
  [
    'grace period',
    'Deployment/worker',
    (worker) => (pod(worker).terminationGracePeriodSeconds = 20),
    'local',
  ],
  ['grace period', 'ConfigMap/settings', set('DRAIN_SECONDS', '40')],
  ['grace period', 'Deployment/pgbouncer', (pooler) => (pod(pooler).terminationGracePeriodSeconds = 10)],
  ['lets go of its clients', 'Deployment/pgbouncer', (pooler) => delete container(pooler).lifecycle],
  [
    'lets go of its clients',
    'Deployment/pgbouncer',
    (pooler) => (container(pooler).lifecycle.preStop.exec.command = ['sh', '-c', 'kill -TERM 1']),
  ],
  ['lets go of its clients', 'Deployment/pgbouncer', ({ spec }) => (spec.replicas = 1)],
  ['spread over nodes', 'Deployment/api', (api) => pod(api).topologySpreadConstraints.pop()],
  ['disruption budget', 'PodDisruptionBudget/api', remove],
  ['disruption budget', 'PodDisruptionBudget/worker', ({ spec }) => (spec.maxUnavailable = 0)],
  ['disruption budget', 'PodDisruptionBudget/api', ({ spec }) => (spec.maxUnavailable = '0%')],
  [
    'disruption budget',
    'PodDisruptionBudget/api',
    ({ spec }) => Object.assign(spec, { maxUnavailable: undefined, minAvailable: '100%' }),
  ],
  ['memory for the polls', 'ConfigMap/settings', set('MAX_WAITERS', '100000')],
  ['memory for the polls', 'ConfigMap/settings', set('IMPORT_CONCURRENCY', '4')],
  [
    'memory for the polls',
    'Job/migrate',
    (job) =>
      Object.assign(container(job).resources, {
        requests: { cpu: '100m', memory: '16Mi' },
        limits: { cpu: '1', memory: '16Mi' },
      }),
  ],
  ['migration runs before', 'Job/migrate', remove],
  ['migration runs before', 'Job/migrate', (job) => (container(job).args = ['api'])],
  [
    'migration runs before',
    'Job/migrate',
    (job) => (variable(job, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'DATABASE_URL'),
  ],
  ['migration runs before', 'Job/migrate', (job) => (pod(job).restartPolicy = 'OnFailure')],
  ['migration runs before', 'Job/migrate', ({ spec }) => (spec.activeDeadlineSeconds = 300)],
  ['migration runs before', 'ConfigMap/settings', set('MIGRATE_WAIT_SECONDS', '3600')],
  [
    'migration runs before',
    'Deployment/api',
    (api) => (pod(api).initContainers[0].env[0].valueFrom.secretKeyRef.key = 'DATABASE_URL'),
    'local',
  ],
];
