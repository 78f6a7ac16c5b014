/** A Kubernetes object as parsed from YAML. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has fields of its own; its schema checks them
  [field: string]: any;
}

interface Metadata {
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** Returns an object's kind and name, for example `Deployment/api`. */
export const nameOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.name}`;

/** Yields every object and array in a value, including the value itself. */
export function* walk(value: unknown): Generator<Record<string, unknown>> {
  if (value === null || typeof value !== 'object') return;
  yield value as Record<string, unknown>;
  for (const part of Object.values(value)) yield* walk(part);
}
