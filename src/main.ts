import { once } from 'node:events';
import { readConfig } from './config.ts';
import { runProgram } from './program.ts';

/** The entry point of the service: `node src/main.ts [command]`. */

process.exitCode = await runProgram(process.argv.slice(2), {
  readConfig,
  out: (text) => (process.stdout.write(text) ? undefined : once(process.stdout, 'drain')),
  err: (text) => process.stderr.write(text),
});
