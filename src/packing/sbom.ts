import { execFileSync } from 'node:child_process';
import { text } from 'node:stream/consumers';

/**
 * `npm sbom --package-lock-only … | node src/packing/sbom.ts [--system]` reads a list of all components (CycloneDX),
 * and writes a list without the components that only development needs. For the container image, `--system` adds Node
 * and the packages of Debian.
 *
 * `npm sbom --omit dev` would leave out too much: it also omits packages that both production and development need.
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

const describeComponent = (type: string, name: string, version: string, purl: string): Component => ({
  'bom-ref': purl,
  type,
  name,
  version,
  purl,
});

/** Lists the packages of the Debian system that this script runs on. */
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
      return describeComponent('library', name, version, purl);
    });
}

/** Lists Node and the packages of the Debian system. */
function listSystem(): Component[] {
  const version = process.version.slice(1);
  return [describeComponent('platform', 'node', version, `pkg:generic/node@${version}`), ...listPackages()];
}

const bom: Bom = JSON.parse(await text(process.stdin));
/** The `bom-ref` of each component that only development needs. */
const omitted = new Set(bom.components.filter(isForDevelopment).map((component) => component['bom-ref']));
const system = process.argv.includes('--system') ? listSystem() : [];
bom.components = [...bom.components.filter((component) => !omitted.has(component['bom-ref'])), ...system];
bom.dependencies = bom.dependencies.filter(({ ref }) => !omitted.has(ref));
process.stdout.write(`${JSON.stringify(bom, undefined, 2)}\n`);
