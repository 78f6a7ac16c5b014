import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { buildKustomization, readObjects } from './kustomize.ts';
import type { KubernetesObject } from './objects.ts';

const BACKUPS_FOLDER = fileURLToPath(new URL('../backups', import.meta.url));
const OVERLAYS_FOLDER = fileURLToPath(new URL('../overlays/', import.meta.url));

export const listOverlays = (): string[] => readdirSync(OVERLAYS_FOLDER).sort();

/** Returns the folder of an overlay. */
export const overlayFolder = (name: string): string => join(OVERLAYS_FOLDER, name);

/** The files that may contain an overlay's Secrets. The first existing file is read. No kustomization includes it. */
const SECRETS = { example: ['secrets.example.yaml'], own: ['secrets.yaml', 'secrets.example.yaml'] };

/**
 * Returns the objects of an overlay and its Secrets. The Secrets come from the example or, with `own`, from the
 * operator's file if there is one.
 */
export function readOverlay(name: string, secrets: keyof typeof SECRETS = 'example'): KubernetesObject[] {
  return [...buildKustomization(overlayFolder(name)), ...readSecrets(name, secrets)];
}

/** Like `readOverlay` with the example Secrets, but adds the component `k8s/backups` to the overlay. */
export function readOverlayWithBackups(name: string): KubernetesObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'bookmarks-overlay-'));
  try {
    const from = realpathSync(folder);
    const kustomization = {
      namespace: 'bookmarks',
      resources: [relative(from, overlayFolder(name))],
      components: [relative(from, BACKUPS_FOLDER)],
    };
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization));
    return [...buildKustomization(folder), ...readSecrets(name, 'example')];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the overlays that an overlay includes. */
function listBases(name: string): string[] {
  const { resources = [] } = parse(readFileSync(join(overlayFolder(name), 'kustomization.yaml'), 'utf8'));
  return listOverlays().filter((overlay) => resources.includes(`../${overlay}`));
}

function readSecrets(name: string, secrets: keyof typeof SECRETS): KubernetesObject[] {
  const files = SECRETS[secrets].flatMap((each) =>
    [name, ...listBases(name)].map((overlay) => join(overlayFolder(overlay), each)),
  );
  const file = files.find(existsSync);
  return file === undefined ? [] : readObjects(readFileSync(file, 'utf8'));
}
