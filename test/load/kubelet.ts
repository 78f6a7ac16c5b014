import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../k8s/check/objects.ts';
import { readEnvironment } from '../../k8s/check/rules/environment.ts';
import { readTermination } from '../../k8s/check/rules/roll-out.ts';
import { listServiceWorkloads } from '../../k8s/check/rules/rule.ts';
import type { Fleet } from '../support/fleet.ts';
import type { Replica, ReplicaEnv } from '../support/replica.ts';

/** How a node runs the api's pods, according to the manifests. Times are in milliseconds. */
export interface PodLife {
  env: ReplicaEnv;
  readinessPeriodMs: number;
  minReadyMs: number;
  preStopMs: number;
  /** The time from the start of preStop to SIGKILL. */
  graceMs: number;
}

/** Variables whose values depend on the machine. The tests set them, and ignore their values in the manifests. */
const OF_THE_PLACE = [
  'DATABASE_URL',
  'DATABASE_IMPORT_URL',
  'REDIS_URL',
  'NODE_ENV',
  'HOST',
  'PORT',
  'METRICS_PORT',
  'LOG_LEVEL',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
];

/**
 * Reads a `PodLife` from built manifests. A scale below 1 shortens the waits, but not the time that the process itself
 * may take to close. The drain time is rounded up to whole seconds.
 */
export function readPodLife(objects: readonly KubernetesObject[], scale: number): PodLife {
  const api = listServiceWorkloads(objects).find(({ owner }) => owner.metadata.name === 'api')!;
  const { preStopSeconds, drainSeconds, graceSeconds } = readTermination(objects, 'api');
  const settings = Object.entries(readEnvironment(objects, api.main)).filter(
    ([name]) => !OF_THE_PLACE.includes(name),
  );
  const scaledDrainSeconds = Math.ceil(drainSeconds * scale);
  const waits = preStopSeconds + drainSeconds;
  return {
    env: { ...Object.fromEntries(settings), DRAIN_SECONDS: scaledDrainSeconds },
    readinessPeriodMs: api.main.readinessProbe.periodSeconds * scale * 1_000,
    minReadyMs: (api.owner.spec.minReadySeconds ?? 0) * scale * 1_000,
    preStopMs: preStopSeconds * scale * 1_000,
    graceMs: (preStopSeconds * scale + scaledDrainSeconds + graceSeconds - waits) * 1_000,
  };
}

/** Starts a pod. Resolves when its readiness probe has succeeded for as long as a roll-out requires. */
export async function startPod(fleet: Fleet, life: PodLife): Promise<Replica> {
  const pod = await fleet.start('api', life.env);
  while ((await pod.readiness()).status !== 200) await sleep(life.readinessPeriodMs);
  await sleep(life.minReadyMs);
  return pod;
}

/** How a pod ended, and how long that took. */
export interface PodEnd {
  exitCode: number | NodeJS.Signals;
  /** The time from SIGTERM, which follows preStop, to the end of the process. */
  ms: number;
}

/** Ends a pod as a node does: preStop, SIGTERM, and SIGKILL after the grace period. */
export async function endPod(pod: Replica, life: PodLife): Promise<PodEnd> {
  await sleep(life.preStopMs);
  const begin = performance.now();
  pod.signal('SIGTERM');
  const kill = setTimeout(() => pod.signal('SIGKILL'), life.graceMs - life.preStopMs);
  const exitCode = await pod.ended;
  clearTimeout(kill);
  return { exitCode, ms: performance.now() - begin };
}
