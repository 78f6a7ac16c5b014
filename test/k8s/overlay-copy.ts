import { type KubernetesObject, nameOf } from '../../k8s/check/objects.ts';
import { readOverlay, readOverlayWithBackups } from '../../k8s/check/overlay.ts';

/** The overlays into which tests put mistakes. */
export type Overlay =
  | 'local'
  | 'production'
  | 'production-aws'
  | 'production-citus'
  | 'production-google'
  | 'production with backups';

const built: Record<Overlay, KubernetesObject[]> = {
  local: readOverlay('local'),
  production: readOverlay('production'),
  'production-aws': readOverlay('production-aws'),
  'production-citus': readOverlay('production-citus'),
  'production-google': readOverlay('production-google'),
  'production with backups': readOverlayWithBackups('production'),
};

/** Returns a copy of an overlay's objects. A test may change this copy. */
export const copyOverlay = (overlay: Overlay = 'production') => structuredClone(built[overlay]);

// biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of every kind
export type AnyObject = any;

/** Returns the object with this name, with or without the hash that a generator adds. */
export function pick(objects: KubernetesObject[], name: string): AnyObject {
  const found =
    objects.find((object) => nameOf(object) === name) ??
    objects.find((object) => nameOf(object).startsWith(`${name}-`));
  if (!found) throw new Error(`there is no ${name}`);
  return found;
}

export const pod = (object: AnyObject) => object.spec.template.spec;
export const container = (object: AnyObject) => pod(object).containers[0];

/** Returns a variable of the first container, by name. */
export const variable = (object: AnyObject, name: string) =>
  container(object).env.find((candidate: { name: string }) => candidate.name === name);
