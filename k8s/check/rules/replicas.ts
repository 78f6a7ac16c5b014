import type { KubernetesObject } from '../objects.ts';
import { find, ofKind } from './rule.ts';

/** A number of pods, or a share such as `25%`, rounded up like in a roll-out. */
export const countPods = (value: string | number, of: number): number =>
  String(value).endsWith('%') ? Math.ceil((of * Number.parseInt(String(value), 10)) / 100) : Number(value);

/** The maximum of a Deployment's pods, including those that a roll-out adds. */
export function countPodsAtMost(objects: readonly KubernetesObject[], name: string): number {
  const deployment = find(objects, 'Deployment', name)!;
  const autoscaler = ofKind(objects, 'HorizontalPodAutoscaler').find(
    ({ spec }) => spec.scaleTargetRef.name === name,
  );
  const replicas: number = autoscaler?.spec.maxReplicas ?? deployment.spec.replicas ?? 1;
  return replicas + countPods(deployment.spec.strategy?.rollingUpdate?.maxSurge ?? '25%', replicas);
}
