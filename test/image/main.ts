import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openRunFolder } from '../chaos/run-folder.ts';
import { provide } from '../support/programs.ts';
import { listBaseNames, provideBases } from './bases.ts';
import { build, changeCode, copyContext, type Layer } from './build.ts';
import { listImages, removeNewImages } from './buildah.ts';
import { openRoot, type Root, start } from './container.ts';
import { runRoles } from './roles.ts';

/**
 * `npm run test:image` builds the image and checks its layers and its list of components. Then it starts every role on
 * a read-only file system, as the image's user, without capabilities. With `--build`, it leaves out the roles. It must
 * run as root on Debian.
 */

const { values } = parseArgs({ options: { build: { type: 'boolean', default: false } } });

const IMAGE = 'localhost/bookmark-service-test:1.2.3';
const REVISION = '0123456789abcdef0123456789abcdef01234567';

/** The most bytes that a registry may receive after a change that affects only the code. */
const MOST_BYTES_OF_A_CHANGE = 8 * 2 ** 20;

const isModules = ({ step }: Layer): boolean => / \/app\/node_modules/.test(step);
const megabytes = (layers: readonly Layer[]): string =>
  `${(layers.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20).toFixed(1)} MiB`;

async function checkLayers(note: (line: string) => void): Promise<void> {
  const context = copyContext();
  const before = await build(context, IMAGE, REVISION);
  note(`built: ${before.length} layers, ${megabytes(before)} compressed`);
  changeCode(context);
  const after = await build(context, `${IMAGE}-changed`, REVISION);
  const modules = [before, after].map((layers) => layers.find(isModules)!.digest);
  assert.equal(modules[0], modules[1], 'the layer of the modules is the same after a change of the code');
  const known = new Set(before.map(({ digest }) => digest));
  const sent = after.filter(({ digest }) => !known.has(digest));
  assert.ok(sent.length > 0, 'a change of the code changes something');
  const bytes = sent.reduce((sum, layer) => sum + layer.bytes, 0);
  assert.ok(bytes < MOST_BYTES_OF_A_CHANGE, `a change of the code sends ${bytes} bytes`);
  note(
    `a change of the code alone sends ${megabytes(sent)}; the modules (${megabytes(before.filter(isModules))}) stay`,
  );
}

/** Checks that the image's list of components names every module, every Debian package, and Node. */
async function checkComponents(root: Root, note: (line: string) => void): Promise<void> {
  const { components } = JSON.parse(readFileSync(join(root.path, 'app/sbom.json'), 'utf8'));
  const listed = new Set(components.map(({ purl }: { purl: string }) => purl.split('?')[0]));
  const modules = execFileSync(
    'find',
    ['app/node_modules', '-name', 'package.json', '-not', '-path', '*/test/*'],
    {
      cwd: root.path,
      encoding: 'utf8',
    },
  );
  const installed = modules
    .split('\n')
    .filter((path) => /node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(path))
    .map((path) => JSON.parse(readFileSync(join(root.path, path), 'utf8')))
    .map(({ name, version }) => `pkg:npm/${name.replace('@', '%40')}@${version}`);
  const status = readFileSync(join(root.path, 'var/lib/dpkg/status'), 'utf8');
  const packages = [...status.matchAll(/^Package: (\S+)$[\s\S]*?^Version: (\S+)$/gm)].map(
    ([, name, version]) => `pkg:deb/debian/${name}@${encodeURIComponent(version!)}`,
  );
  const there = [...installed, ...packages, `pkg:generic/node@${process.versions.node}`];
  assert.ok(installed.length > 50 && packages.length > 50);
  assert.deepEqual(
    there.filter((purl) => !listed.has(purl)),
    [],
  );
  note(`sbom.json names all ${installed.length} modules, ${packages.length} packages of Debian, and Node`);
}

/** Checks that the file system is read-only, that the user has no capabilities, and that the image has no npm. */
async function checkConfinement(root: Root, note: (line: string) => void): Promise<void> {
  assert.equal(root.config.User, '10001:10001');
  const script =
    'for f in /app /tmp /var/tmp /app/.compile-cache; do touch $f/x 2>/dev/null && echo "wrote $f"; done; ' +
    'id -u; grep CapEff /proc/self/status; command -v npm npx gcc curl || true';
  const { output } = await start(root, ['-c', script], {}, ['/bin/sh']).ended;
  assert.equal(output, '10001\nCapEff:\t0000000000000000\n');
  note('read-only, user 10001, no capability, no npm');
}

async function run(): Promise<void> {
  using _folder = openRunFolder();
  const begunAt = performance.now();
  const note = (line: string) =>
    console.log(`${Math.round((performance.now() - begunAt) / 1_000)} s: ${line}`);
  await provide('buildah');
  await provideBases(note);
  const images = await listImages();
  try {
    await checkLayers(note);
    await using root = await openRoot(IMAGE);
    await checkComponents(root, note);
    await checkConfinement(root, note);
    if (values.build) return;
    const roles = await runRoles(root, IMAGE.split(':')[1]!, REVISION);
    note(`roles that started and did their work: ${roles.join(', ')}`);
  } finally {
    await removeNewImages(images, listBaseNames());
  }
}

await run();
