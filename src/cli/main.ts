#!/usr/bin/env node
import { readEnvironment, useProxies } from './environment.ts';
import { describeFault, EXIT } from './faults.ts';
import { runCli } from './program.ts';

/** The program `bookmarks`: the command line for users. */

const controller = new AbortController();
process.once('SIGINT', () => controller.abort());
process.once('SIGTERM', () => controller.abort());
const { stdin, stdout, stderr } = process;
stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader may close the output early, as in `bookmarks list | head`. That is not a failure.
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  stderr.write(`bookmarks: standard output: ${describeFault(error)?.error ?? error.message}\n`);
  process.exit(EXIT.failed);
});

const environment = readEnvironment();
const proxyNote = useProxies(environment);
if (proxyNote !== undefined) stderr.write(`${proxyNote}\n`);
process.exitCode = await runCli(
  process.argv.slice(2),
  environment,
  { stdin, stdout, stderr },
  controller.signal,
);
// An open standard input would keep the process alive.
process.stdin.unref?.();
