import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { provide } from '../support/programs.ts';
import { buildah, hasImage, listBases } from './buildah.ts';

/**
 * Builds stand-ins for the Dockerfile's base images from Debian packages, for machines that cannot reach an image
 * registry.
 */

const MIRROR = 'http://deb.debian.org/debian';

const ofHub = (name: string): string => `docker.io/library/${name}`;

async function makeDebian(name: string, suite: string): Promise<void> {
  const program = await provide('debootstrap');
  const folder = makeFolder('base');
  try {
    await promisify(execFile)(program, ['--variant=minbase', suite, folder, MIRROR], { maxBuffer: 64 << 20 });
    const container = await buildah('from', 'scratch');
    await buildah('add', '--quiet', container, folder, '/');
    await buildah('commit', '--quiet', '--rm', container, ofHub(name));
  } finally {
    removeFolder(folder);
  }
}

/** Builds the stand-in for the Node image: Debian with this process's Node and the machine's npm. */
async function makeNode(name: string, debian: string): Promise<void> {
  const npm = dirname(dirname(realpathSync((await promisify(execFile)('which', ['npm'])).stdout.trim())));
  const container = await buildah('from', '--pull-never', ofHub(debian));
  const copy = (from: string, to: string) => buildah('copy', '--quiet', container, from, to);
  await copy(realpathSync(process.execPath), '/usr/local/bin/node');
  await copy(npm, '/usr/local/lib/node_modules/npm');
  const run = (line: string) => buildah('run', '--isolation', 'chroot', container, '--', 'sh', '-c', line);
  await run('ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm');
  // Node links to these two libraries. The official image contains them too.
  await run(
    'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install libatomic1 libstdc++6',
  );
  await buildah('commit', '--quiet', '--rm', container, ofHub(name));
}

/** Builds the base images that do not exist yet. */
export async function provideBases(note: (line: string) => void): Promise<void> {
  const [node, debian] = listBases() as [string, string];
  const version = `node:${process.versions.node}-`;
  if (!node.startsWith(version))
    throw new Error(`the Dockerfile has ${node}, and this is Node ${process.version}`);
  const suite = /:(\w+)-slim/.exec(debian)![1]!;
  if (!(await hasImage(ofHub(debian)))) {
    note(`no registry of images is asked: ${debian} is made of Debian's packages`);
    await makeDebian(debian, suite);
  }
  if (!(await hasImage(ofHub(node)))) {
    note(`${node} is made of that and of Node's own build`);
    await makeNode(node, debian);
  }
}

/** Returns the names of the base images. A run does not remove these images, so that the next run can use them. */
export const listBaseNames = (): string[] => listBases().map(ofHub);
