import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What is packed is the client and the command line, not the service: its `package.json` names neither the service's
 * dependencies nor its scripts. npm reads it from the folder that it packs, so that it stands in the place of the
 * whole one while it does.
 */

type Manifest = Record<string, unknown> & { dependencies: Record<string, string> };

/** What the command line needs. It is packed with it, so that an installation fetches nothing. */
const BUNDLED = ['commander', 'csv-parse', 'htmlparser2'];

/** What both manifests say alike. */
const SHARED = ['name', 'version', 'license', 'type', 'exports', 'bin', 'files'];

const DESCRIPTION = 'The client and the command line of the Bookmark Service';

/** As commander 15 asks for; the client alone runs wherever `fetch` does. */
const ENGINES = { node: '>=22.12.0' };

/** The manifest to be packed, made from the whole one. */
export function leanManifest(whole: Manifest): Record<string, unknown> {
  const shared = Object.fromEntries(SHARED.filter((key) => key in whole).map((key) => [key, whole[key]]));
  const dependencies = Object.fromEntries(BUNDLED.map((name) => [name, whole.dependencies[name]]));
  return { description: DESCRIPTION, ...shared, engines: ENGINES, dependencies, bundleDependencies: BUNDLED };
}

const pathsIn = (folder: string) => ({
  manifest: join(folder, 'package.json'),
  whole: join(folder, '.package.json.whole'),
});

/** Puts the lean manifest in the place of the whole one, which is kept beside it. */
export function putLeanManifest(folder: string): void {
  const { manifest, whole } = pathsIn(folder);
  putWholeManifest(folder);
  const text = readFileSync(manifest, 'utf8');
  writeFileSync(whole, text);
  writeFileSync(manifest, `${JSON.stringify(leanManifest(JSON.parse(text)), null, 2)}\n`);
}

/** Puts the whole manifest back; harmless where it is there. A run that was interrupted is mended by the next one. */
export function putWholeManifest(folder: string): void {
  const { manifest, whole } = pathsIn(folder);
  if (existsSync(whole)) renameSync(whole, manifest);
}
