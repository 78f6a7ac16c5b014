import { readFileSync } from 'node:fs';

const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));

/** The version in the file that the image's build writes, or that of package.json. */
function readBuild(): { version: string; revision: string } {
  try {
    return readJson('../../build.json');
  } catch {
    return { version: readJson('../../package.json').version, revision: 'unknown' };
  }
}

/** The version of this service, and the commit that its image was built from. */
export const { version: VERSION, revision: REVISION } = readBuild();
