import type { KubernetesObject } from './check/objects.ts';

export function makeCanary(objects: readonly KubernetesObject[], pods: number): KubernetesObject[];
export function splitRoutes(objects: readonly KubernetesObject[], weight: number): KubernetesObject[];
