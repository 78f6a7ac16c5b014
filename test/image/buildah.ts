import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** Runs the program `buildah`. It needs no daemon, and its containers are chroots. */

const PROJECT = resolve(import.meta.dirname, '../..');

/** Runs buildah and returns its output. Rejects with the error message of buildah if it fails. */
export async function buildah(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('buildah', args, { maxBuffer: 64 << 20 });
  return stdout.trim();
}

/** Returns the Dockerfile's base images, in order. */
export const listBases = (): string[] =>
  [...readFileSync(join(PROJECT, 'Dockerfile'), 'utf8').matchAll(/^FROM (\S+)/gm)].map(([, name]) => name!);

export const hasImage = (name: string): Promise<boolean> =>
  buildah('inspect', '--type', 'image', name).then(
    () => true,
    () => false,
  );

/** Returns every image on the machine, including images without names. */
export const listImages = async (): Promise<Set<string>> =>
  new Set((await buildah('images', '--all', '--quiet', '--no-trunc')).split('\n').filter(Boolean));

/** Removes all images that are not in `before`, except those with a name in `kept`. */
export async function removeNewImages(before: ReadonlySet<string>, kept: readonly string[]): Promise<void> {
  const bases = await Promise.all(
    kept.map((name) => buildah('images', '--quiet', '--no-trunc', name).catch(() => '')),
  );
  const made = [...(await listImages())].filter((id) => !before.has(id) && !bases.includes(id));
  if (made.length > 0) await buildah('rmi', '--force', ...made).catch(() => {});
}
