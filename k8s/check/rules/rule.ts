import type { KubernetesObject } from '../objects.ts';

/** What must hold of an overlay's objects. */
export interface Rule {
  /** A sentence that says what holds. */
  name: string;
  /** What breaks it, as `Kind/name: what is wrong`; empty where it holds. */
  check(objects: readonly KubernetesObject[]): string[];
}

/** A pod template, and the object that makes pods of it. */
export interface Workload {
  owner: KubernetesObject;
  labels: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: checked by the schema
  spec: any;
  // biome-ignore lint/suspicious/noExplicitAny: checked by the schema
  containers: any[];
}

export const ofKind = (objects: readonly KubernetesObject[], kind: string): KubernetesObject[] =>
  objects.filter((object) => object.kind === kind);

/** The object, or nothing; a rule about it says so itself. */
export const find = (objects: readonly KubernetesObject[], kind: string, name: string) =>
  ofKind(objects, kind).find(({ metadata }) => metadata.name === name);

/** Everything that makes pods. */
export function listWorkloads(objects: readonly KubernetesObject[]): Workload[] {
  return objects
    .filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job'].includes(kind))
    .map((owner) => ({
      owner,
      labels: owner.spec.template.metadata.labels,
      spec: owner.spec.template.spec,
      containers: [
        ...(owner.spec.template.spec.initContainers ?? []),
        ...owner.spec.template.spec.containers,
      ],
    }));
}

/** Those that run this service's image: api, worker, migrate. */
export const listServiceWorkloads = (objects: readonly KubernetesObject[]): Workload[] =>
  listWorkloads(objects).filter(({ labels }) => labels['app.kubernetes.io/name'] === 'bookmarks');

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
