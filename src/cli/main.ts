#!/usr/bin/env node
import { readEnvironment } from './environment.ts';
import { runCli } from './program.ts';

/** The command line for users, `bookmarks`. */

const controller = new AbortController();
process.once('SIGINT', () => controller.abort());
process.once('SIGTERM', () => controller.abort());
// The reader may close the output early: `bookmarks list | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { stdin, stdout, stderr } = process;
process.exitCode = await runCli(
  process.argv.slice(2),
  readEnvironment(),
  { stdin, stdout, stderr },
  controller.signal,
);
// An open standard input would keep the process alive.
process.stdin.unref?.();
