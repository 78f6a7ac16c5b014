import { execFileSync } from 'node:child_process';
import { json } from 'node:stream/consumers';

/**
 * `npm sbom --package-lock-only … | node src/packing/sbom.ts [--system]`: writes what production runs (CycloneDX), of a
 * list of everything. With `--system` Node and Debian's packages stand in it, too: for the image.
 *
 * `npm sbom --omit dev` is no help: it leaves out what production and development both need, 38 modules of 175.
 */

interface Component {
  type: string;
  name: string;
  version: string;
  purl: string;
  'bom-ref': string;
  properties?: { name: string; value: string }[];
}

interface Bom {
  components: Component[];
  dependencies: { ref: string }[];
}

const isForDevelopment = ({ properties = [] }: Component): boolean =>
  properties.some(({ name }) => name === 'cdx:npm:package:development');

const describe = (type: string, name: string, version: string, purl: string): Component => ({
  'bom-ref': purl,
  type,
  name,
  version,
  purl,
});

/** The packages of a Debian system. */
function listPackages(): Component[] {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders
  const format = '${Package} ${Version} ${Architecture}\n';
  const lines = execFileSync('dpkg-query', ['--show', `--showformat=${format}`], { encoding: 'utf8' });
  return lines
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', version = '', architecture] = line.split(' ');
      const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`;
      return describe('library', name, version, purl);
    });
}

function listSystem(): Component[] {
  const version = process.version.slice(1);
  return [describe('platform', 'node', version, `pkg:generic/node@${version}`), ...listPackages()];
}

const bom = (await json(process.stdin)) as Bom;
const left = new Set(bom.components.filter(isForDevelopment).map((component) => component['bom-ref']));
const system = process.argv.includes('--system') ? listSystem() : [];
bom.components = [...bom.components.filter((component) => !left.has(component['bom-ref'])), ...system];
bom.dependencies = bom.dependencies.filter(({ ref }) => !left.has(ref));
process.stdout.write(`${JSON.stringify(bom, undefined, 2)}\n`);
