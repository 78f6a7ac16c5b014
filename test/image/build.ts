import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';
import { buildah } from './buildah.ts';

/** Builds of the image, and what a registry would be sent of them. */

const PROJECT = resolve(import.meta.dirname, '../..');

/** What the image is made of. */
const CONTEXT = ['Dockerfile', '.dockerignore', 'package.json', 'package-lock.json', '.npmrc', 'src', 'sql'];

/** This machine's authorities and settings of npm, which the build's steps do not have by themselves. */
const OF_THE_MACHINE = [
  ['/etc/ssl/certs', '/etc/ssl/certs'],
  ['/etc/npmrc', '/usr/local/etc/npmrc'],
] as const;

/** A layer as a registry gets it. */
export interface Layer {
  /** What made it. */
  step: string;
  digest: string;
  bytes: number;
}

/** A copy of what the image is made of, to be changed. */
export function copyContext(): string {
  const folder = makeFolder('context', runDir());
  for (const name of CONTEXT) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  return folder;
}

/** Changes nothing but the code. */
export const changeCode = (context: string): void =>
  appendFileSync(
    join(context, 'src/config.ts'),
    '\n/** A change of the code alone. */\nexport const CHANGED = true;\n',
  );

/** Builds; returns the layers of the image, lowest first. Steps whose inputs are unchanged are not run again. */
export async function build(context: string, name: string, revision: string): Promise<Layer[]> {
  const volumes = OF_THE_MACHINE.filter(([from]) => existsSync(from)).map(
    ([from, to]) => `--volume=${from}:${to}:ro`,
  );
  const [, version] = name.split(':');
  await buildah(
    'build',
    // The format that knows HEALTHCHECK.
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
