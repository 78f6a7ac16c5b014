import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The npm package contains the client and the command line, but not the service. So the package's manifest
 * (`package.json`) has neither the scripts nor the dependencies that only the service needs. npm reads the manifest in
 * the folder that it packs. So while npm packs, the package's manifest replaces the repository's manifest.
 *
 * The names in this file call the package's manifest *lean*, and the repository's manifest *whole*.
 */

type Manifest = Record<string, unknown> & { dependencies: Record<string, string> };

/**
 * Dependencies of the command line. The package includes their code, so that it can be installed without a network.
 */
const BUNDLED = ['commander', 'entities'];

/**
 * Dependencies that only the command `bookmarks mcp` needs. They are large, so the package does not include them. npm
 * downloads them when it installs the package, and continues without them if there is no network.
 */
const OPTIONAL = ['@modelcontextprotocol/server', 'zod'];

/** The fields that both manifests have in common. */
const SHARED = ['name', 'version', 'license', 'type', 'exports', 'bin', 'files'];

const DESCRIPTION = 'The client and the command line of the Bookmark Service';

/**
 * The oldest Node on which the command line runs. Two parts need Node 22.13: the commands that use a SQLite file, and
 * `client/sqlite`. The client alone runs on any platform with `fetch`.
 */
const ENGINES = { node: '>=20.19.0' };

/** The manual page of the command line, which `prepack` writes. */
const MANUAL = './dist/bookmarks.1';

/** Returns the package's manifest, made from the repository's manifest. */
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

/**
 * Replaces the repository's manifest and README with those of the package. Keeps the originals in the same folder,
 * under other names.
 */
export function putLeanManifest(folder: string): void {
  const { manifest, whole, readme, wholeReadme, packageReadme } = pathsIn(folder);
  putWholeManifest(folder);
  if (existsSync(readme)) renameSync(readme, wholeReadme);
  if (existsSync(packageReadme)) copyFileSync(packageReadme, readme);
  const text = readFileSync(manifest, 'utf8');
  writeFileSync(whole, text);
  writeFileSync(manifest, `${JSON.stringify(leanManifest(JSON.parse(text)), null, 2)}\n`);
}

/** Restores the repository's manifest and README, even after interrupted packing. Does nothing if they are in place. */
export function putWholeManifest(folder: string): void {
  const { manifest, whole, readme, wholeReadme } = pathsIn(folder);
  if (existsSync(whole)) renameSync(whole, manifest);
  if (existsSync(wholeReadme)) renameSync(wholeReadme, readme);
}
