import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The package holds the client and the command line, not the service, so its `package.json` names neither the
 * service's dependencies nor its scripts. npm reads `package.json` from the folder that it packs, so the package's
 * one takes the place of the repository's while npm packs.
 */

type Manifest = Record<string, unknown> & { dependencies: Record<string, string> };

/** The dependencies of the command line. They are packed with it, so that it can be installed without a network. */
const BUNDLED = ['commander', 'csv-parse', 'htmlparser2'];

/** What only `mcp` needs. It is large, so npm downloads it when the package is installed, and goes on without a network. */
const OPTIONAL = ['@modelcontextprotocol/server', 'zod'];

/** The fields that both manifests have in common. */
const SHARED = ['name', 'version', 'license', 'type', 'exports', 'bin', 'files'];

const DESCRIPTION = 'The client and the command line of the Bookmark Service';

/** Commands with a SQLite file and `client/sqlite` need Node 22.13; the client alone runs wherever `fetch` does. */
const ENGINES = { node: '>=20.19.0' };

/** Written by `prepack`. */
const MANUAL = './dist/bookmarks.1';

/** Makes the manifest of the package from the repository's. */
export function leanManifest(whole: Manifest): Record<string, unknown> {
  const shared = Object.fromEntries(SHARED.filter((key) => key in whole).map((key) => [key, whole[key]]));
  const versionsOf = (names: string[]) =>
    Object.fromEntries(names.map((name) => [name, whole.dependencies[name]]));
  return {
    description: DESCRIPTION,
    ...shared,
    engines: ENGINES,
    sideEffects: false,
    man: MANUAL,
    dependencies: versionsOf(BUNDLED),
    optionalDependencies: versionsOf(OPTIONAL),
    bundleDependencies: BUNDLED,
  };
}

const pathsIn = (folder: string) => ({
  manifest: join(folder, 'package.json'),
  whole: join(folder, '.package.json.whole'),
  readme: join(folder, 'README.md'),
  wholeReadme: join(folder, '.README.md.whole'),
  packageReadme: join(folder, 'src/client/README.md'),
});

/** Puts the package's manifest and README in the place of the repository's, and keeps those in the same folder. */
export function putLeanManifest(folder: string): void {
  const { manifest, whole, readme, wholeReadme, packageReadme } = pathsIn(folder);
  putWholeManifest(folder);
  if (existsSync(readme)) renameSync(readme, wholeReadme);
  if (existsSync(packageReadme)) copyFileSync(packageReadme, readme);
  const text = readFileSync(manifest, 'utf8');
  writeFileSync(whole, text);
  writeFileSync(manifest, `${JSON.stringify(leanManifest(JSON.parse(text)), null, 2)}\n`);
}

/**
 * Puts the repository's manifest and README back; does nothing where it is in place. It also repairs what an interrupted run
 * left.
 */
export function putWholeManifest(folder: string): void {
  const { manifest, whole, readme, wholeReadme } = pathsIn(folder);
  if (existsSync(whole)) renameSync(whole, manifest);
  if (existsSync(wholeReadme)) renameSync(wholeReadme, readme);
}
