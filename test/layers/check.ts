import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBreaches, findUnusedExports } from './rules.ts';

// Part of `npm run check`: prints what is against the rules of the layers, and ends with 1 where anything is.

const root = join(import.meta.dirname, '../..');
const paths = globSync('{src,test,k8s}/**/*.ts', { cwd: root }).sort();
const files = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
const found = [...findBreaches(files), ...findUnusedExports(files)];
for (const breach of found) console.error(breach);
if (found.length > 0) process.exitCode = 1;
else console.log(`Checked the imports of ${paths.length} files. All is in its layer.`);
