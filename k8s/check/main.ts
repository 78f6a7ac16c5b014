import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { buildKustomization } from './kustomize.ts';
import { type KubernetesObject, nameOf } from './objects.ts';
import { findFaults, RULES } from './rules.ts';

/**
 * `npm run k8s:check`: builds every overlay, validates each object against the schema of its API version and checks the
 * rules, offline. `-- --kubectl` also compares what is built with `kubectl kustomize`, where that is installed.
 */

export const OVERLAYS_FOLDER = fileURLToPath(new URL('../overlays/', import.meta.url));

export const listOverlays = (): string[] => readdirSync(OVERLAYS_FOLDER).sort();

/** Where our build of an overlay is not what kubectl's kustomize makes of it. */
function compareWithKubectl(folder: string, objects: KubernetesObject[]): string[] {
  const text = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  const documents = parseAllDocuments(text);
  const theirs = new Map(
    [...documents]
      .map((document) => document.toJS() as KubernetesObject)
      .map((object) => [nameOf(object), object]),
  );
  const names = new Set([...theirs.keys(), ...objects.map(nameOf)]);
  const ours = new Map(objects.map((object) => [nameOf(object), object]));
  return [...names]
    .filter((name) => !isDeepStrictEqual(ours.get(name), theirs.get(name)))
    .map((name) => `${name}: kubectl builds another object`);
}

async function checkOverlay(name: string, withKubectl: boolean): Promise<number> {
  const folder = OVERLAYS_FOLDER + name;
  const objects = buildKustomization(folder);
  const faults = [
    ...(await findFaults(objects)),
    ...(withKubectl ? compareWithKubectl(folder, objects) : []),
  ];
  for (const fault of faults) console.error(`${name}: ${fault}`);
  if (faults.length === 0)
    console.log(`${name}: ${objects.length} objects, valid; ${RULES.length} rules hold`);
  return faults.length;
}

if (import.meta.main) {
  let faults = 0;
  for (const overlay of listOverlays())
    faults += await checkOverlay(overlay, process.argv.includes('--kubectl'));
  process.exitCode = faults === 0 ? 0 : 1;
}
