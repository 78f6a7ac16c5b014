import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';
import { buildah } from './buildah.ts';

/** Builds the image and lists the layers that a registry would receive. */

const PROJECT = resolve(import.meta.dirname, '../..');

/** The files that the image is built from. */
const CONTEXT = ['Dockerfile', '.dockerignore', 'package.json', 'package-lock.json', '.npmrc', 'src', 'sql'];

/**
 * The machine's certificate authorities and npm settings. They are mounted, because build steps would not see them
 * otherwise.
 */
const OF_THE_MACHINE = [
  ['/etc/ssl/certs', '/etc/ssl/certs'],
  ['/etc/npmrc', '/usr/local/etc/npmrc'],
] as const;

/** A layer that a registry receives. */
export interface Layer {
  /** The Dockerfile step that created it. */
  step: string;
  digest: string;
  bytes: number;
}

/** Copies the files that the image is built from, so that a test can change the copies. */
export function copyContext(): string {
  const folder = makeFolder('context', runDir());
  for (const name of CONTEXT) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  return folder;
}

/** Changes a file of code, and no other input of the image. */
export const changeCode = (context: string): void =>
  appendFileSync(
    join(context, 'src/config.ts'),
    '\n/** A change of the code alone. */\nexport const CHANGED = true;\n',
  );

/** Builds the image and returns its layers, lowest first. Does not repeat a step whose inputs are unchanged. */
export async function build(context: string, name: string, revision: string): Promise<Layer[]> {
  const volumes = OF_THE_MACHINE.filter(([from]) => existsSync(from)).map(
    ([from, to]) => `--volume=${from}:${to}:ro`,
  );
  const [, version] = name.split(':');
  await buildah(
    'build',
    // Only images in this format can have a HEALTHCHECK.
    '--format=docker',
    '--isolation=chroot',
    '--pull-never',
    '--layers',
    ...volumes,
    `--build-arg=VERSION=${version}`,
    `--build-arg=REVISION=${revision}`,
    `--tag=${name}`,
    context,
  );
  return push(name);
}

async function push(name: string): Promise<Layer[]> {
  const folder = join(makeFolder('pushed', runDir()), 'image');
  mkdirSync(folder);
  await buildah('push', '--quiet', name, `dir:${folder}`);
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const config = JSON.parse(
    readFileSync(join(folder, manifest.config.digest.replace('sha256:', '')), 'utf8'),
  );
  const steps = config.history.filter(({ empty_layer }: { empty_layer?: boolean }) => !empty_layer);
  return manifest.layers.map(({ digest, size }: { digest: string; size: number }, n: number) => ({
    step: steps[n].created_by,
    digest,
    bytes: size,
  }));
}
