import type { KubernetesObject } from './check/objects.ts';

export function makeCanary(objects: readonly KubernetesObject[], pods: number): KubernetesObject[];
export function splitRoutes(objects: readonly KubernetesObject[], weight: number): KubernetesObject[];

interface Events {
  bad: number;
  all: number;
}

interface EventCounts {
  failed: Events;
  slow: Events;
}

export function countEvents(text: string): EventCounts;
export function countBetween(
  before: ReadonlyMap<string, EventCounts>,
  after: ReadonlyMap<string, EventCounts>,
): EventCounts;
