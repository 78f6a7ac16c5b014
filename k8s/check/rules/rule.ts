import type { KubernetesObject } from '../objects.ts';

/** What must hold of an overlay's objects. */
export interface Rule {
  /** A sentence that says what holds. */
  name: string;
  /** What breaks it, as `Kind/name: what is wrong`; empty where it holds. */
  check(objects: readonly KubernetesObject[]): string[];
}

// biome-ignore lint/suspicious/noExplicitAny: checked by the schema
export type Container = any;

/** A pod template, and the object that makes pods of it. */
export interface Workload {
  owner: KubernetesObject;
  labels: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: checked by the schema
  spec: any;
  /** Those that run before the others, and the others. */
  containers: Container[];
  /** The one that the pod is there for; what stands beside it comes after. */
  main: Container;
}

export const ofKind = (objects: readonly KubernetesObject[], kind: string): KubernetesObject[] =>
  objects.filter((object) => object.kind === kind);

/** The object, or nothing; a rule about it says so itself. */
export const find = (objects: readonly KubernetesObject[], kind: string, name: string) =>
  ofKind(objects, kind).find(({ metadata }) => metadata.name === name);

/** Everything that makes pods. */
export function listWorkloads(objects: readonly KubernetesObject[]): Workload[] {
  return objects
    .filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job', 'CronJob'].includes(kind))
    .map((owner) => {
      const { spec, metadata } = (owner.spec.jobTemplate?.spec ?? owner.spec).template;
      const containers = [...(spec.initContainers ?? []), ...spec.containers];
      return { owner, labels: metadata.labels, spec, containers, main: spec.containers[0] };
    });
}

/** Whether its pods end by themselves, and serve nobody. */
export const endsByItself = ({ owner }: Workload): boolean => ['Job', 'CronJob'].includes(owner.kind);

export const isOfService = ({ labels }: Workload): boolean =>
  labels['app.kubernetes.io/name'] === 'bookmarks';

/** Those that run this service's image: api, worker, migrate. */
export const listServiceWorkloads = (objects: readonly KubernetesObject[]): Workload[] =>
  listWorkloads(objects).filter(isOfService);

/** The workload of one role, where the overlay has it. */
export const findRole = (
  objects: readonly KubernetesObject[],
  role: 'api' | 'worker',
): Workload | undefined => listServiceWorkloads(objects).find(({ owner }) => owner.metadata.name === role);

/** Containers that migrate: of a Job, or before others in their pods. */
export const listMigrations = (objects: readonly KubernetesObject[]) =>
  listServiceWorkloads(objects).flatMap((workload) =>
    workload.containers
      .filter(({ args }) => args?.[0] === 'migrate')
      .map((container: Container) => ({ workload, container })),
  );

/** Whether a selector of labels and expressions (`In` alone) takes what has these labels. */
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

/** The text as a finding where something does not hold. */
export const unless = (holds: boolean, text: string): string[] => (holds ? [] : [text]);
