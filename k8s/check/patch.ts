import type { KubernetesObject } from './objects.ts';

type Fields = Record<string, unknown>;

/** One operation of RFC 6902. */
export interface Operation {
  op: string;
  path: string;
  value?: unknown;
}

/** By what name the elements of a list are told apart; other lists of objects are not merged here. */
const MERGE_KEYS: Record<string, string> = {
  containers: 'name',
  initContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
};

/** Applies a JSON patch; throws for an operation other than add, replace and remove, or a path that is not there. */
export function applyOperations(object: KubernetesObject, operations: Operation[]): void {
  for (const { op, path, value } of operations) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop()!;
    const parent = keys.reduce<unknown>((at, key) => (at as Fields | undefined)?.[key], object) as
      | Fields
      | undefined;
    if (parent === undefined || (op !== 'add' && !(last in parent)))
      throw new Error(`patch: there is no ${path}`);
    applyOperation(parent, op, last, value);
  }
}

function applyOperation(parent: Fields, op: string, key: string, value: unknown): void {
  if (op !== 'add' && op !== 'replace' && op !== 'remove') throw new Error(`patch: ${op} is not supported`);
  if (!Array.isArray(parent)) {
    if (op === 'remove') delete parent[key];
    else parent[key] = value;
  } else if (op === 'replace') parent[Number(key)] = value;
  else if (op === 'remove') parent.splice(Number(key), 1);
  else parent.splice(key === '-' ? parent.length : Number(key), 0, value);
}

/** Merges a strategic patch: maps by key (null removes), lists of containers and the like by name, others replaced. */
export function merge(target: Fields, patch: Fields): void {
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) throw new Error(`patch: ${key} is not supported`);
    if (value === null) delete target[key];
    else if (Array.isArray(value)) target[key] = mergeList(key, (target[key] ?? []) as Fields[], value);
    else if (typeof value === 'object') {
      target[key] ??= {};
      merge(target[key] as Fields, value as Fields);
    } else target[key] = value;
  }
}

function mergeList(name: string, target: Fields[], patch: unknown[]): unknown[] {
  if (patch.every((item) => item === null || typeof item !== 'object')) return patch;
  const key = MERGE_KEYS[name];
  if (key === undefined) throw new Error(`patch: a list of ${name} is not merged here; use a JSON patch`);
  const added: Fields[] = [];
  for (const item of patch as Fields[]) {
    const match = target.find((element) => element[key] === item[key]);
    if (match) merge(match, item);
    else added.push(item);
  }
  // As kustomize: what a patch adds comes first.
  return [...added, ...target];
}
