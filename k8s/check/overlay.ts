import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildKustomization, readObjects } from './kustomize.ts';
import type { KubernetesObject } from './objects.ts';

const OVERLAYS_FOLDER = fileURLToPath(new URL('../overlays/', import.meta.url));

export const listOverlays = (): string[] => readdirSync(OVERLAYS_FOLDER).sort();

/** The folder of an overlay by its name. */
export const overlayFolder = (name: string): string => join(OVERLAYS_FOLDER, name);

/** Where the Secrets of an overlay stand that are made outside of it. */
const SECRETS = { example: ['secrets.example.yaml'], own: ['secrets.yaml', 'secrets.example.yaml'] };

/**
 * The objects of an overlay, and the Secrets that are made outside of it: as its example shows them, or the operator's own
 * where they are there.
 */
export function readOverlay(name: string, secrets: keyof typeof SECRETS = 'example'): KubernetesObject[] {
  const file = SECRETS[secrets].map((each) => join(overlayFolder(name), each)).find(existsSync);
  const made = file === undefined ? [] : readObjects(readFileSync(file, 'utf8'));
  return [...buildKustomization(overlayFolder(name)), ...made];
}
