import { appendFileSync, cpSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Engine } from '../containers/engine.ts';
import { PROXIES } from '../containers/stand-ins.ts';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';

/** Builds the image and lists its layers. */

const PROJECT = resolve(import.meta.dirname, '../..');

/** The files that the image is built from. */
const CONTEXT = ['Dockerfile', '.dockerignore', 'package.json', 'package-lock.json', '.npmrc', 'src', 'sql'];

/** A layer of an image. */
export interface Layer {
  /** The Dockerfile step that created it. */
  step: string;
  digest: string;
  /** Its size without compression. */
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
export async function build(
  engine: Engine,
  context: string,
  name: string,
  revision: string,
): Promise<Layer[]> {
  const [repository, version] = name.split(':');
  const run = (tag: string, ...options: string[]) =>
    engine.docker('build', '--quiet', '--network=host', ...PROXIES, ...options, `--tag=${tag}`, context);
  // The name keeps the first stage, and so the installed packages, in the cache.
  await run(`${repository}:modules`, '--target=build');
  await run(name, `--build-arg=VERSION=${version}`, `--build-arg=REVISION=${revision}`);
  const steps = (await engine.docker('history', '--no-trunc', '--human=false', '--format={{json .}}', name))
    .split('\n')
    .map((line): { CreatedBy: string; Size: string } => JSON.parse(line))
    .filter(({ Size }) => Size !== '0')
    .reverse();
  const digests: string[] = JSON.parse(
    await engine.docker('image', 'inspect', '--format={{json .RootFS.Layers}}', name),
  );
  if (steps.length !== digests.length)
    throw new Error(`the image has ${digests.length} layers, but its history has ${steps.length}`);
  return digests.map((digest, n) => ({ step: steps[n]!.CreatedBy, digest, bytes: Number(steps[n]!.Size) }));
}
