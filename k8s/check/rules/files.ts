import type { KubernetesObject } from '../objects.ts';
import { readSecret } from './environment.ts';
import { type Container, ofKind, type Workload } from './rule.ts';

interface Volume {
  name: string;
  secret?: { secretName: string; items?: Item[] };
  configMap?: { name: string; items?: Item[] };
}

interface Item {
  key: string;
  path: string;
}

/**
 * If a Secret or ConfigMap fills a volume, returns the values of that object by key. Returns undefined for other
 * volumes, or if the object is missing.
 */
function readSource(
  objects: readonly KubernetesObject[],
  volume: Volume,
): Record<string, string> | undefined {
  if (volume.secret) return readSecret(objects, volume.secret.secretName);
  return ofKind(objects, 'ConfigMap').find(({ metadata }) => metadata.name === volume.configMap?.name)?.data;
}

/** Returns the files that a container mounts from Secrets and ConfigMaps: for each path, the contents of the file. */
export function listMountedFiles(
  objects: readonly KubernetesObject[],
  { spec }: Workload,
  container: Container,
): Map<string, string> {
  const mounts: { name: string; mountPath: string }[] = container.volumeMounts ?? [];
  const files = mounts.flatMap(({ name, mountPath }) => {
    const volume = ((spec.volumes ?? []) as Volume[]).find((candidate) => candidate.name === name);
    const source = volume && readSource(objects, volume);
    if (!source) return [];
    const items =
      (volume.secret ?? volume.configMap)!.items ?? Object.keys(source).map((key) => ({ key, path: key }));
    return items.flatMap(({ key, path }): [string, string][] =>
      source[key] === undefined ? [] : [[`${mountPath}/${path}`, source[key]]],
    );
  });
  return new Map(files);
}
