import { readFileSync } from 'node:fs';

const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));

/** What the image says of itself: its build writes the file. */
function readBuild(): { version: string; revision: string } {
  try {
    return readJson('../../build.json');
  } catch {
    return { version: readJson('../../package.json').version, revision: 'unknown' };
  }
}

/** The version of this service: the image's, or package.json's; and the commit that the image was made of. */
export const { version: VERSION, revision: REVISION } = readBuild();
