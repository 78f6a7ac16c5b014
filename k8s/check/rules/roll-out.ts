import { CLOSE_LIMIT_MS } from '../../../src/process/serve.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import { readContainerConfig } from './environment.ts';
import { countPods } from './replicas.ts';
import {
  type Container,
  find,
  findRole,
  listMigrations,
  listServiceWorkloads,
  listWorkloads,
  ofKind,
  type Rule,
  selects,
  unless,
} from './rule.ts';

/** With a shorter preStop, nodes and load balancers may still send requests to a pod that has ended. */
const SHORTEST_PRE_STOP_SECONDS = 5;

/** If the process ends as late as it can, this much time must be left before Kubernetes kills the container. */
const ROOM_SECONDS = 5;

/**
 * The memory of an idle process, of a held poll, and of an import of 64 MiB. See
 * docs/decisions/0185-the-sizes-of-pods-and-the-image.md.
 */
const PROCESS_BYTES = 150e6;
const WAITER_BYTES = 40_000;
const IMPORT_BYTES = 600e6;

/** The number of large imports that a replica runs at a time while Redis cannot be reached. */
const IMPORTS_WITHOUT_REDIS = 2;

/** Returns by how many seconds preStop delays the end of a container: by one `sleep`, or by several in a command. */
function readPreStopSeconds({ lifecycle }: Container): number {
  const { sleep, exec } = lifecycle?.preStop ?? {};
  if (sleep) return sleep.seconds;
  const sleeps = [...(exec?.command ?? []).join(' ').matchAll(/\bsleep (\d+)/g)];
  return sleeps.reduce((sum, [, seconds]) => sum + Number(seconds), 0);
}

/**
 * Returns the seconds that each step takes at most when a pod of this role ends, and the seconds after which Kubernetes
 * kills the pod (`graceSeconds`).
 */
export function readTermination(objects: readonly KubernetesObject[], role: 'api' | 'worker') {
  const { main, spec } = findRole(objects, role)!;
  const { drainSeconds } = readContainerConfig(objects, main);
  return {
    preStopSeconds: readPreStopSeconds(main),
    drainSeconds,
    closeSeconds: CLOSE_LIMIT_MS / 1_000,
    graceSeconds: (spec.terminationGracePeriodSeconds ?? 30) as number,
  };
}

function findMemoryFaults(objects: readonly KubernetesObject[]): string[] {
  return listServiceWorkloads(objects).flatMap(({ owner, containers }) =>
    containers.flatMap((container: Container) => {
      const [role] = container.args ?? [];
      const { maxWaiters, importConcurrency, maxOutboundBacklog } = readContainerConfig(objects, container);
      const polls = role === 'api' ? maxWaiters * WAITER_BYTES : 0;
      const imports = { api: IMPORTS_WITHOUT_REDIS, worker: importConcurrency }[role as string] ?? 0;
      const backlog = role === 'api' ? maxOutboundBacklog : 0;
      const needed = PROCESS_BYTES + polls + backlog + imports * IMPORT_BYTES;
      const limit = readQuantity(container.resources?.limits?.memory ?? '0');
      return unless(
        limit >= needed,
        `${nameOf(owner)}: ${container.name} needs ${needed} bytes, has ${limit}`,
      );
    }),
  );
}

function findJobFaults(objects: readonly KubernetesObject[]): string[] {
  return ofKind(objects, 'Job').flatMap((job) => {
    const { activeDeadlineSeconds, template } = job.spec;
    const { migrateWaitSeconds } = readContainerConfig(objects, template.spec.containers[0]);
    return [
      ...unless(
        activeDeadlineSeconds > 2 * migrateWaitSeconds,
        'its deadline is below two tries of MIGRATE_WAIT_SECONDS',
      ),
    ].map((fault) => `${nameOf(job)}: ${fault}`);
  });
}

const readUrlKey = ({ env = [] }: Container): string | undefined =>
  env.find(({ name }: { name: string }) => name === 'DATABASE_URL')?.valueFrom?.secretKeyRef?.key;

/**
 * Returns whether a disruption budget allows evicting at least one pod, but not all pods at the same time. If there is
 * only one pod, the budget must allow evicting it.
 */
function isDrainable({ maxUnavailable, minAvailable }: Container, replicas: number): boolean {
  const evictable =
    maxUnavailable === undefined
      ? replicas - countPods(minAvailable, replicas)
      : countPods(maxUnavailable, replicas);
  return evictable >= 1 && (replicas === 1 || evictable < replicas);
}

/** Returns the smallest number of pods that a Deployment may have. */
function countPodsAtLeast(objects: readonly KubernetesObject[], deployment: KubernetesObject): number {
  const autoscaler = ofKind(objects, 'HorizontalPodAutoscaler').find(
    ({ spec }) => spec.scaleTargetRef.name === deployment.metadata.name,
  );
  return autoscaler?.spec.minReplicas ?? deployment.spec.replicas ?? 1;
}

export const rollOutRules: Rule[] = [
  {
    name: 'an ending api pod serves until load balancers know about it',
    check: (objects) => {
      const { preStopSeconds, drainSeconds } = readTermination(objects, 'api');
      return [
        ...unless(
          preStopSeconds >= SHORTEST_PRE_STOP_SECONDS,
          `Deployment/api: preStop sleeps ${preStopSeconds} s`,
        ),
        ...unless(drainSeconds > 0, 'Deployment/api: DRAIN_SECONDS is 0'),
      ];
    },
  },
  {
    name: 'the grace period is above preStop, drain and close',
    check: (objects) => [
      ...(['api', 'worker'] as const).flatMap((role) => {
        const { preStopSeconds, drainSeconds, closeSeconds, graceSeconds } = readTermination(objects, role);
        const needed = preStopSeconds + drainSeconds + closeSeconds + ROOM_SECONDS;
        const fault = `terminationGracePeriodSeconds is ${graceSeconds}, but ${needed} are needed`;
        return unless(graceSeconds >= needed, `Deployment/${role}: ${fault}`);
      }),
      ...listWorkloads(objects).flatMap(({ owner, spec, main }) => {
        const [grace, preStop] = [spec.terminationGracePeriodSeconds ?? 30, readPreStopSeconds(main)];
        return unless(
          grace >= preStop + ROOM_SECONDS,
          `${nameOf(owner)}: preStop takes ${preStop} s of ${grace}`,
        );
      }),
    ],
  },
  {
    name: 'an ending pooler disconnects its clients, which connect to another instance',
    check: (objects) =>
      listWorkloads(objects)
        .filter(({ labels }) => labels['app.kubernetes.io/name'] === 'pgbouncer')
        .flatMap(({ owner, main }) => {
          const command = (main.lifecycle?.preStop?.exec?.command ?? []).join(' ');
          const isRight = /sleep (\d+); kill -INT 1; sleep \d+/.test(command);
          return [
            ...unless(isRight, `${nameOf(owner)}: preStop does not sleep, send SIGINT and sleep again`),
            ...unless((owner.spec.replicas ?? 1) >= 2, `${nameOf(owner)}: there is no other instance`),
          ];
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
        const replicas = countPodsAtLeast(objects, deployment);
        return unless(
          isDrainable(budget.spec, replicas),
          `${nameOf(budget)}: lets none or all of ${replicas} pods be evicted`,
        );
      }),
  },
  {
    name: 'a process has the memory for the polls, responses and imports that it may hold',
    check: findMemoryFaults,
  },
  {
    name: 'a roll-out of api and worker starts new pods before it ends old ones',
    check: (objects) =>
      ofKind(objects, 'Deployment').flatMap(({ spec, metadata }) => {
        const { maxUnavailable, maxSurge } = spec.strategy?.rollingUpdate ?? {};
        const isRight = maxUnavailable === 0 && maxSurge !== 0 && maxSurge !== undefined;
        return unless(isRight, `Deployment/${metadata.name}: maxUnavailable is not 0, or maxSurge is`);
      }),
  },
  {
    name: 'the migration completes before the pods start, and does not use the pooler',
    check: (objects) => [
      ...unless(listMigrations(objects).length > 0, 'nothing migrates'),
      ...listMigrations(objects).flatMap(({ workload, container }) =>
        unless(
          readUrlKey(container) === 'MIGRATE_DATABASE_URL',
          `${nameOf(workload.owner)}: DATABASE_URL is not MIGRATE_DATABASE_URL`,
        ),
      ),
      ...findJobFaults(objects),
    ],
  },
];
