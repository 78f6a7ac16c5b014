import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBreaches, findUnusedExports } from './rules.ts';

// Part of `npm run check`. Prints violations of the layer rules and exits with 1 if there are any.

const root = join(import.meta.dirname, '../..');
const paths = globSync('{src,test,k8s}/**/*.ts', { cwd: root }).sort();
const files = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
const found = [...findBreaches(files), ...findUnusedExports(files)];
for (const breach of found) console.error(breach);
if (found.length > 0) process.exitCode = 1;
else console.log(`Checked the imports of ${paths.length} files. All is in its layer.`);
