import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildKustomization, readObjects } from './kustomize.ts';
import type { KubernetesObject } from './objects.ts';

const OVERLAYS_FOLDER = fileURLToPath(new URL('../overlays/', import.meta.url));

export const listOverlays = (): string[] => readdirSync(OVERLAYS_FOLDER).sort();

/** The folder of an overlay by its name. */
export const overlayFolder = (name: string): string => join(OVERLAYS_FOLDER, name);

/** The objects of an overlay, and the Secrets that are made outside of it, as its example shows them. */
export function readOverlay(name: string): KubernetesObject[] {
  const example = join(overlayFolder(name), 'secrets.example.yaml');
  const secrets = existsSync(example) ? readObjects(readFileSync(example, 'utf8')) : [];
  return [...buildKustomization(overlayFolder(name)), ...secrets];
}
