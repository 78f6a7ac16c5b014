import { execFileSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from './objects.ts';

/**
 * Builds kustomizations with the kustomize of `kubectl`, so that the checked objects are the ones that a cluster
 * gets.
 */

/** The oldest kubectl that builds these overlays in the same way as newer versions. It contains kustomize 5. */
const OLDEST_KUBECTL = [1, 27] as const;

/** Builds the objects of a folder that contains a kustomization.yaml. Throws kubectl's message if the build fails. */
export function buildKustomization(folder: string): KubernetesObject[] {
  requireKubectl();
  return readObjects(runKubectl(['kustomize', folder]));
}

/** Parses the objects of a YAML text with one or more documents. Throws for invalid YAML. */
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

/** Runs kubectl. If kubectl fails, the message of the thrown error contains kubectl's stderr. */
const runKubectl = (args: string[]): string =>
  execFileSync('kubectl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 << 20 });
