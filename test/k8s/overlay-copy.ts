import { expect } from 'vitest';
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

/** A function that changes an overlay. Its first argument is the object that the breakage names. */
export type Change = (object: AnyObject, objects: KubernetesObject[]) => void;

/**
 * A mistake in an object of an overlay (by default `production`). `rule` is a part of the name of the rule that the
 * mistake violates.
 */
export type Breakage = [rule: string, object: string, change: Change, overlay?: Overlay];

export const pod = (object: AnyObject) => object.spec.template.spec;
export const container = (object: AnyObject) => pod(object).containers[0];

/** Returns a variable of the first container, by name. */
export const variable = (object: AnyObject, name: string) =>
  container(object).env.find((candidate: { name: string }) => candidate.name === name);

/** Removes the object. */
export const remove: Change = (object, objects) => {
  objects.splice(objects.indexOf(object), 1);
};

/** Makes a change that replaces text in a file of a ConfigMap or Secret. The change throws if the text is missing. */
export const edit =
  (file: string, from: string, to: string): Change =>
  (object) => {
    const texts = object.stringData ?? object.data;
    expect(texts[file]).toContain(from);
    texts[file] = texts[file].replaceAll(from, to);
  };

/** Makes a change that sets a variable of the service. */
export const set =
  (name: string, value: string): Change =>
  ({ data }) => {
    data[name] = value;
  };
