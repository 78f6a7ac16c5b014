import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeManual } from '../cli/manual.ts';
import { buildProgram } from '../cli/program.ts';
import { putLeanManifest, putWholeManifest } from './manifest.ts';

/**
 * Runs before `npm pack`. Compiles the code to JavaScript with declarations in `dist/`, because Node does not run
 * TypeScript inside node_modules. Also writes the manual of the command line to `dist/`.
 */

/** Matches an import of a `.ts` file by a relative path. */
const RELATIVE_IMPORT = /(?<untilExtension>(?:from|import\() ?'\.{1,2}\/[^']+)\.ts'/g;

const folder = process.cwd();
putWholeManifest(folder);
rmSync(join(folder, 'dist'), { recursive: true, force: true });
execFileSync('tsc', ['--project', 'tsconfig.build.json'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
});

// The TypeScript compiler rewrites `.ts` to `.js` in the imports of `.js` files, but not in the imports of `.d.ts`
// files. Older TypeScript compilers, which users may have, cannot read `.d.ts` files that import `.ts` files.
for (const name of readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  const path = join(folder, 'dist', name);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(RELATIVE_IMPORT, "$<untilExtension>.js'"));
}
const { stdin, stdout, stderr } = process;
const program = buildProgram({ stdin, stdout, stderr }, () => async () => {});
writeFileSync(join(folder, 'dist/bookmarks.1'), writeManual(program));
putLeanManifest(folder);
