import type { KubernetesObject } from '../objects.ts';
import { find, ofKind } from './rule.ts';

/** Reads a number of pods. A share such as `25%` is a share of `total`, and is rounded up. */
export const countPods = (value: string | number, total: number): number =>
  String(value).endsWith('%') ? Math.ceil((total * Number.parseInt(String(value), 10)) / 100) : Number(value);

/** Returns the largest number of pods that a Deployment may have, including those that a rollout adds. */
export function countPodsAtMost(objects: readonly KubernetesObject[], name: string): number {
  const deployment = find(objects, 'Deployment', name)!;
  const autoscaler = ofKind(objects, 'HorizontalPodAutoscaler').find(
    ({ spec }) => spec.scaleTargetRef.name === name,
  );
  const replicas: number = autoscaler?.spec.maxReplicas ?? deployment.spec.replicas ?? 1;
  return replicas + countPods(deployment.spec.strategy?.rollingUpdate?.maxSurge ?? '25%', replicas);
}
