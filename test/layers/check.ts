import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENVIRONMENT_READERS, findBreaches, SQL_PLACES } from './rules.ts';

// Part of `npm run check`. Prints places in `src/` that may not contain SQL or read the environment, and exits with 1 if
// there are any. biome.json has the rules for imports, and knip.json those for unused exports and dependencies.

const root = join(import.meta.dirname, '../..');
const paths = globSync('src/**/*.ts', { cwd: root }).sort();
const found = [
  ...paths.flatMap((path) => findBreaches(path, readFileSync(join(root, path), 'utf8'))),
  ...[...ENVIRONMENT_READERS, ...SQL_PLACES]
    .filter((place) => !existsSync(join(root, place)))
    .map((place) => `test/layers/rules.ts: there is no ${place}`),
];
for (const breach of found) console.error(breach);
if (found.length > 0) process.exitCode = 1;
