import type { KubernetesObject } from '../objects.ts';

/** A rule for an overlay's objects. */
export interface Rule {
  /** A sentence that states the rule. */
  name: string;
  /** Returns the violations as `Kind/name: fault`; empty if there are none. */
  check(objects: readonly KubernetesObject[]): string[];
}

// biome-ignore lint/suspicious/noExplicitAny: checked by the schema
export type Container = any;

/** A pod template, and the object that creates pods from this template. */
export interface Workload {
  owner: KubernetesObject;
  labels: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: checked by the schema
  spec: any;
  /** All containers, init containers first. */
  containers: Container[];
  /** The first container that is not an init container. */
  main: Container;
}

export const ofKind = (objects: readonly KubernetesObject[], kind: string): KubernetesObject[] =>
  objects.filter((object) => object.kind === kind);

/** Returns the object of this kind and name, or undefined if it is missing. */
export const find = (objects: readonly KubernetesObject[], kind: string, name: string) =>
  ofKind(objects, kind).find(({ metadata }) => metadata.name === name);

/** Returns a workload for each object that creates pods. */
export function listWorkloads(objects: readonly KubernetesObject[]): Workload[] {
  return objects
    .filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job', 'CronJob'].includes(kind))
    .map((owner) => {
      const { spec, metadata } = (owner.spec.jobTemplate?.spec ?? owner.spec).template;
      const containers = [...(spec.initContainers ?? []), ...spec.containers];
      return { owner, labels: metadata.labels, spec, containers, main: spec.containers[0] };
    });
}

/** Returns whether the workload's pods end by themselves and serve no requests. */
export const endsByItself = ({ owner }: Workload): boolean => ['Job', 'CronJob'].includes(owner.kind);

export const isOfService = ({ labels }: Workload): boolean =>
  labels['app.kubernetes.io/name'] === 'bookmarks';

/** Returns the workloads whose pods run this service: api, worker and migrate. */
export const listServiceWorkloads = (objects: readonly KubernetesObject[]): Workload[] =>
  listWorkloads(objects).filter(isOfService);

/** Returns the workload of one role, if the overlay has it. */
export const findRole = (
  objects: readonly KubernetesObject[],
  role: 'api' | 'worker',
): Workload | undefined => listServiceWorkloads(objects).find(({ owner }) => owner.metadata.name === role);

/** Returns the containers that migrate: in a Job, or as init containers. */
export const listMigrations = (objects: readonly KubernetesObject[]) =>
  listServiceWorkloads(objects).flatMap((workload) =>
    workload.containers
      .filter(({ args }) => args?.[0] === 'migrate')
      .map((container: Container) => ({ workload, container })),
  );

/** Returns whether a selector matches these labels. In expressions, this function supports only the operator `In`. */
export function selects(
  selector: {
    matchLabels?: object;
    matchExpressions?: { key: string; operator: string; values: string[] }[];
  },
  labels: Record<string, string> = {},
): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(
      ({ key, operator, values }) => operator === 'In' && values.includes(labels[key] ?? ''),
    )
  );
}

/** Returns the text as a violation unless the condition holds. */
export const unless = (holds: boolean, text: string): string[] => (holds ? [] : [text]);
