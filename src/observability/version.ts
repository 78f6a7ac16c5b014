import { readFileSync } from 'node:fs';

const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));

/** Reads `build.json`, which the build of the image writes. Without this file, returns the version in package.json. */
function readBuild(): { version: string; revision: string } {
  try {
    return readJson('../../build.json');
  } catch {
    return { version: readJson('../../package.json').version, revision: 'unknown' };
  }
}

/** The version of this service, and the commit that its image was built from. */
export const { version: VERSION, revision: REVISION } = readBuild();
