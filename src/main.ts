import { once } from 'node:events';
import { readConfig } from './config.ts';
import { runProgram } from './program.ts';

/** The process: `node src/main.ts [role]`. */

const exitCode = await runProgram(process.argv.slice(2), {
  readConfig,
  out: (text) => (process.stdout.write(text) ? undefined : once(process.stdout, 'drain')),
  err: (text) => process.stderr.write(text),
});
// A serving role may have set an exit code after a fault. Do not overwrite it with 0.
if (exitCode !== 0) process.exitCode = exitCode;
