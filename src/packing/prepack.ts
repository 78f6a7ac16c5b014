import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeManual } from '../cli/manual.ts';
import { buildProgram } from '../cli/program.ts';
import { putLeanManifest, putWholeManifest } from './manifest.ts';

/**
 * Runs before `npm pack`. Compiles to JavaScript with declarations in `dist/`, because Node strips no types inside
 * node_modules. Also writes the command line's manual to `dist/`.
 */

const folder = process.cwd();
putWholeManifest(folder);
rmSync(join(folder, 'dist'), { recursive: true, force: true });
execFileSync('tsc', ['--project', 'tsconfig.build.json'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
});

// The compiler rewrites `.ts` to `.js` only in code. The older compilers of some users expect `.js` in declarations
// too.
for (const name of readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  const path = join(folder, 'dist', name);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/((?:from|import\() ?'\.{1,2}\/[^']+)\.ts'/g, "$1.js'"));
}
const { stdin, stdout, stderr } = process;
const program = buildProgram({ stdin, stdout, stderr }, () => async () => {});
writeFileSync(join(folder, 'dist/bookmarks.1'), writeManual(program));
putLeanManifest(folder);
