import type { KubernetesObject } from '../objects.ts';
import { find, ofKind } from './rule.ts';

/** A number of pods, or a share of all as `25%`; a roll-out rounds what it adds up. */
export const countPods = (value: string | number, of: number): number =>
  String(value).endsWith('%') ? Math.ceil((of * Number.parseInt(String(value), 10)) / 100) : Number(value);

/** Pods of a Deployment at most, with those that a roll-out adds. */
export function countPodsAtMost(objects: readonly KubernetesObject[], name: string): number {
  const deployment = find(objects, 'Deployment', name)!;
  const autoscaler = ofKind(objects, 'HorizontalPodAutoscaler').find(
    ({ spec }) => spec.scaleTargetRef.name === name,
  );
  const replicas: number = autoscaler?.spec.maxReplicas ?? deployment.spec.replicas ?? 1;
  return replicas + countPods(deployment.spec.strategy?.rollingUpdate?.maxSurge ?? '25%', replicas);
}
