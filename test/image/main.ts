import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { openRunFolder } from '../chaos/run-folder.ts';
import { type Engine, needEngine, startEngine } from '../containers/engine.ts';
import { provideBases } from '../containers/stand-ins.ts';
import { build, changeCode, copyContext, type Layer } from './build.ts';
import { startContainer } from './container.ts';
import { runRoles } from './roles.ts';

/**
 * `npm run test:image` builds the image and checks its layers and its list of components. Then it starts every role on
 * a read-only file system, as the image's user, without capabilities. With `--build`, it leaves out the roles. It must
 * run as root on Debian.
 */

const { values } = parseArgs({ options: { build: { type: 'boolean', default: false } } });

const VERSION = '1.2.3';
const IMAGE = `bookmark-service-test:${VERSION}`;
const REVISION = '0123456789abcdef0123456789abcdef01234567';

/** The most bytes of the layers that a change of only the code may change. */
const MOST_BYTES_OF_A_CHANGE = 8 * 2 ** 20;

const isModules = ({ step }: Layer): boolean => / \/app\/node_modules/.test(step);
const megabytes = (layers: readonly Layer[]): string =>
  `${(layers.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20).toFixed(1)} MiB`;

async function checkLayers(engine: Engine, log: (line: string) => void): Promise<void> {
  const context = copyContext();
  const before = await build(engine, context, IMAGE, REVISION);
  log(`built: ${before.length} layers, ${megabytes(before)}`);
  changeCode(context);
  const after = await build(engine, context, `bookmark-service-test:changed`, REVISION);
  const modules = [before, after].map((layers) => layers.find(isModules)!.digest);
  assert.equal(modules[0], modules[1], 'the layer of the modules is the same after a change of the code');
  const known = new Set(before.map(({ digest }) => digest));
  const sent = after.filter(({ digest }) => !known.has(digest));
  assert.ok(sent.length > 0, 'a change of the code changes something');
  const bytes = sent.reduce((sum, layer) => sum + layer.bytes, 0);
  assert.ok(bytes < MOST_BYTES_OF_A_CHANGE, `a change of the code changes ${bytes} bytes`);
  log(
    `a change of the code changes ${megabytes(sent)}; the modules (${megabytes(before.filter(isModules))}) stay`,
  );
}

/** Prints the image's list of components in one line, then the modules and the Debian packages of the image that are installed, and Node. */
const LIST_COMPONENTS = `
node -p 'JSON.stringify(JSON.parse(fs.readFileSync("/app/sbom.json")))'
find /app/node_modules -name package.json -not -path '*/test/*' | grep -E 'node_modules/(@[^/]+/)?[^/]+/package.json$' \
  | xargs node -p 'process.argv.slice(1).map((p) => JSON.parse(fs.readFileSync(p))).map((m) => "pkg:npm/" + m.name.replace("@", "%40") + "@" + m.version).join("\\n")'
dpkg-query --show --showformat 'pkg:deb/debian/\${Package}@\${Version}\\n'
node -p '"pkg:generic/node@" + process.versions.node'`;

/** Checks that the image's list of components names every module, every Debian package, and Node. */
async function checkComponents(engine: Engine, log: (line: string) => void): Promise<void> {
  const { output } = await (
    await startContainer(engine, IMAGE, ['-c', LIST_COMPONENTS], {}, '/bin/sh')
  ).wait();
  const [sbom, ...there] = output.split('\n');
  const listed = new Set(
    JSON.parse(sbom!).components.map(({ purl }: { purl: string }) => decodeURIComponent(purl.split('?')[0]!)),
  );
  for (const kind of ['npm', 'deb'])
    assert.ok(there.filter((purl) => purl.startsWith(`pkg:${kind}/`)).length > 50);
  assert.equal(there.at(-1), `pkg:generic/node@${process.versions.node}`);
  assert.deepEqual(
    there.filter((purl) => !listed.has(decodeURIComponent(purl))),
    [],
  );
  log(`sbom.json names all ${there.length} modules, packages of Debian, and Node`);
}

/** Checks that the file system is read-only, that the user has no capabilities, and that the image has no npm. */
async function checkConfinement(engine: Engine, log: (line: string) => void): Promise<void> {
  assert.equal(await engine.docker('image', 'inspect', '--format={{.Config.User}}', IMAGE), '10001:10001');
  const script =
    'for f in /app /tmp /var/tmp /app/.compile-cache; do touch $f/x 2>/dev/null && echo "wrote $f"; done; ' +
    'id -u; grep CapEff /proc/self/status; command -v npm npx gcc curl || true';
  const { output } = await (await startContainer(engine, IMAGE, ['-c', script], {}, '/bin/sh')).wait();
  assert.equal(output, '10001\nCapEff:\t0000000000000000');
  log('read-only, user 10001, no capability, no npm');
}

await needEngine(async () => {
  using _folder = openRunFolder();
  const begunAt = performance.now();
  const log = (line: string) =>
    console.log(`${Math.round((performance.now() - begunAt) / 1_000)} s: ${line}`);
  await using engine = await startEngine();
  await provideBases(engine, log);
  await checkLayers(engine, log);
  await checkComponents(engine, log);
  await checkConfinement(engine, log);
  if (values.build) return;
  const roles = await runRoles({ engine, name: IMAGE }, VERSION, REVISION);
  log(`roles that started and did their work: ${roles.join(', ')}`);
});
