import { execFileSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from './objects.ts';

/** Builds of kustomizations, by the kustomize that `kubectl` brings: what is checked is what a cluster is given. */

/** The oldest whose kustomize (5) builds these overlays as newer ones do. */
const OLDEST_KUBECTL = [1, 27] as const;

/** The objects of a folder with a kustomization.yaml; throws kubectl's own words where it cannot be built. */
export function buildKustomization(folder: string): KubernetesObject[] {
  requireKubectl();
  return readObjects(runKubectl(['kustomize', folder]));
}

/** The objects of a YAML text, which may hold several documents; throws for what is no YAML. */
export function readObjects(text: string): KubernetesObject[] {
  return [...parseAllDocuments(text, { uniqueKeys: true })].flatMap((document) => {
    if (document.errors.length > 0) throw new Error(document.errors[0]!.message);
    const object = document.toJS() as KubernetesObject | null;
    return object === null ? [] : [object];
  });
}

let isFound = false;

function requireKubectl(): void {
  if (isFound) return;
  const [major, minor] = OLDEST_KUBECTL;
  const advice = `kubectl ${major}.${minor} or newer is needed on the PATH to build the manifests`;
  let version: { major: string; minor: string };
  try {
    ({ clientVersion: version } = JSON.parse(runKubectl(['version', '--client', '--output=json'])));
  } catch (error) {
    throw new Error(`${advice}: ${(error as Error).message}`);
  }
  if (Number(version.major) === major && Number.parseInt(version.minor, 10) < minor)
    throw new Error(`${advice}; this one is ${version.major}.${version.minor}`);
  isFound = true;
}

/** Its standard error is part of the error that is thrown. */
const runKubectl = (args: string[]): string =>
  execFileSync('kubectl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 << 20 });
