import { CLOSE_LIMIT_MS } from '../../../src/process/serve.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import { readWorkloadConfig } from './environment.ts';
import { find, listServiceWorkloads, listWorkloads, ofKind, type Rule, selects } from './rule.ts';

/** Shorter, and nodes and balancers may not have heard that a pod is no endpoint any more. */
const SHORTEST_PRE_STOP_SECONDS = 5;

/** Between the end that the service promises and the kill. */
const ROOM_SECONDS = 5;

/** Measured: a process at rest, a held poll after a burst, an import of 64 MiB in hand. */
const PROCESS_BYTES = 150e6;
const WAITER_BYTES = 40_000;
const IMPORT_BYTES = 600e6;

/** While Redis is away the replica that receives an import runs it, this many at a time. */
const IMPORTS_WITHOUT_REDIS = 2;

/** How long a pod takes from being told to end until it has ended, in seconds. */
export function readTermination(objects: readonly KubernetesObject[], role: 'api' | 'worker') {
  const workload = listServiceWorkloads(objects).find(({ owner }) => owner.metadata.name === role)!;
  const preStopSeconds: number = workload.containers[0].lifecycle?.preStop?.sleep?.seconds ?? 0;
  const { drainSeconds } = readWorkloadConfig(objects, workload);
  const graceSeconds: number = workload.spec.terminationGracePeriodSeconds ?? 30;
  return { preStopSeconds, drainSeconds, closeSeconds: CLOSE_LIMIT_MS / 1_000, graceSeconds };
}

export const rollOutRules: Rule[] = [
  {
    name: 'a roll-out takes no replica away before the next is ready',
    check: (objects) =>
      ofKind(objects, 'Deployment').flatMap((deployment) => {
        const { maxUnavailable, maxSurge } = deployment.spec.strategy?.rollingUpdate ?? {};
        return maxUnavailable === 0 && maxSurge !== undefined && Number.parseInt(maxSurge, 10) > 0
          ? []
          : [`${nameOf(deployment)}: maxUnavailable is not 0, or maxSurge is`];
      }),
  },
  {
    name: 'an api pod serves on until balancers have heard that it goes',
    check: (objects) => {
      const { preStopSeconds, drainSeconds } = readTermination(objects, 'api');
      return [
        ...(preStopSeconds >= SHORTEST_PRE_STOP_SECONDS
          ? []
          : [`Deployment/api: preStop sleeps ${preStopSeconds} s`]),
        ...(drainSeconds > 0 ? [] : ['Deployment/api: DRAIN_SECONDS is 0']),
      ];
    },
  },
  {
    name: 'the grace period is above preStop, drain and close',
    check: (objects) =>
      (['api', 'worker'] as const).flatMap((role) => {
        const { preStopSeconds, drainSeconds, closeSeconds, graceSeconds } = readTermination(objects, role);
        const needed = preStopSeconds + drainSeconds + closeSeconds + ROOM_SECONDS;
        return graceSeconds >= needed
          ? []
          : [`Deployment/${role}: terminationGracePeriodSeconds is ${graceSeconds}, needed are ${needed}`];
      }),
  },
  {
    name: 'api pods are spread over nodes and zones',
    check: (objects) => {
      const spread = find(objects, 'Deployment', 'api')?.spec.template.spec.topologySpreadConstraints ?? [];
      return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone']
        .filter((key) => !spread.some(({ topologyKey }: { topologyKey: string }) => topologyKey === key))
        .map((key) => `Deployment/api: is not spread by ${key}`);
    },
  },
  {
    name: 'every Deployment has a disruption budget that lets nodes be drained',
    check: (objects) =>
      ofKind(objects, 'Deployment').flatMap((deployment) => {
        const budget = ofKind(objects, 'PodDisruptionBudget').find(({ spec }) =>
          selects(spec.selector, deployment.spec.template.metadata.labels),
        );
        if (budget === undefined) return [`${nameOf(deployment)}: has no PodDisruptionBudget`];
        return budget.spec.maxUnavailable >= 1 ? [] : [`${nameOf(budget)}: maxUnavailable is below 1`];
      }),
  },
  {
    name: 'a pod has the memory for the polls and imports that it may hold',
    check: (objects) =>
      listServiceWorkloads(objects)
        .filter(({ owner }) => owner.kind === 'Deployment')
        .flatMap((workload) => {
          const isApi = workload.owner.metadata.name === 'api';
          const { maxWaiters, importConcurrency } = readWorkloadConfig(objects, workload);
          const polls = isApi ? maxWaiters * WAITER_BYTES : 0;
          const imports = (isApi ? IMPORTS_WITHOUT_REDIS : importConcurrency) * IMPORT_BYTES;
          const needed = PROCESS_BYTES + polls + imports;
          const limit = readQuantity(workload.containers[0].resources?.limits?.memory ?? '0');
          return limit >= needed
            ? []
            : [`${nameOf(workload.owner)}: needs ${needed} bytes, its limit is ${limit}`];
        }),
  },
  {
    name: 'the migration runs once, to its end, and not through the pooler',
    check: (objects) => {
      const job = listWorkloads(objects).find(({ owner }) => owner.kind === 'Job');
      if (job === undefined) return ['there is no migration Job'];
      const [container] = job.containers;
      const url = container.env?.find(({ name }: { name: string }) => name === 'DATABASE_URL');
      return [
        ...(container.args?.[0] === 'migrate' ? [] : [`${nameOf(job.owner)}: does not migrate`]),
        ...(job.spec.restartPolicy === 'Never' ? [] : [`${nameOf(job.owner)}: restartPolicy is not Never`]),
        ...(url?.valueFrom?.secretKeyRef?.key === 'MIGRATE_DATABASE_URL'
          ? []
          : [`${nameOf(job.owner)}: DATABASE_URL is not MIGRATE_DATABASE_URL`]),
      ];
    },
  },
];
