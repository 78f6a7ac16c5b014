import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { listFamily } from '../../support/processes.ts';
import { provide } from '../../support/programs.ts';
import type { ProcessGroups } from './process-time.ts';
import type { Side } from './rounds.ts';

/** Runs PostgreSQL's own programs from the PATH. They show what a client in C achieves with the same database. */

/**
 * Checks that the programs exist. Installs missing programs if this process runs as root on Debian. If programs are
 * still missing, rejects and says what to install.
 */
export async function requirePrograms(): Promise<void> {
  for (const program of ['pgbench', 'psql']) {
    const runs = () => promisify(execFile)(program, ['--version']);
    await runs().catch(async () => {
      await provide('postgresql');
      await runs().catch(() => {
        throw new Error(`the benchmarks need ${program} on the PATH (Debian: apt-get install postgresql)`);
      });
    });
  }
}

/** A script for pgbench, which replaces `:name` with the value of the script's `\set` line. */
export interface PgbenchScript {
  url: string;
  folder: string;
  name: string;
  text: string;
  clients: number;
}

/** Makes a side that runs one script in pgbench with prepared statements, at full speed. */
export function pgbenchSide(name: string, script: PgbenchScript, processes: ProcessGroups): Side {
  const file = join(script.folder, `${script.name}.pgbench`);
  writeFileSync(file, script.text);
  const postmasters = Object.values(processes).flat();
  return {
    name,
    processes,
    async run(seconds) {
      const before = postmasters.flatMap(listFamily).length;
      const sample = await runPgbench(script, file, seconds);
      // The CPU time of a backend is known only after the postmaster has collected the backend's exit status.
      for (let tries = 0; tries < 100 && postmasters.flatMap(listFamily).length > before; tries += 1)
        await sleep(20);
      return sample;
    },
  };
}

async function runPgbench({ url, clients }: PgbenchScript, file: string, seconds: number) {
  // pgbench accepts only whole seconds. A smoke run is shorter than a second, so it runs a fixed number of transactions
  // instead.
  const length = seconds < 1 ? ['-t', '10'] : ['-T', String(Math.round(seconds))];
  const args = ['-n', '-M', 'prepared', '-c', String(clients), '-j', '1', ...length, '-f', file, url];
  const { stdout, stderr } = await promisify(execFile)('pgbench', args).catch((error) => {
    throw new Error(`pgbench failed: ${String(error.stderr).slice(0, 1_000)}`);
  });
  const rate = Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
  const operations = Number(/actually processed: (\d+)/.exec(stdout)?.[1]);
  if (!(rate > 0)) throw new Error(`pgbench said: ${stdout}${stderr}`);
  return { rate, operations };
}

/** Runs SQL with psql and returns its output. `input` is the data for `copy … from stdin`. */
export function runPsql(url: string, sql: string, input?: Iterable<string | Buffer>): Promise<string> {
  return runProgram('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', sql, url], input);
}

async function runProgram(
  program: string,
  args: string[],
  input: Iterable<string | Buffer> = [],
): Promise<string> {
  const child = spawn(program, args, { stdio: 'pipe' });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  child.stdin.on('error', () => {});
  for (const chunk of input) if (!child.stdin.write(chunk)) await once(child.stdin, 'drain');
  child.stdin.end();
  const [printed, complaint, [code]] = await output;
  if (code !== 0) throw new Error(`${program} failed: ${complaint.trim().slice(0, 1_000)}`);
  return printed;
}

/**
 * Runs one statement with psql. Returns the time that psql reports, in milliseconds. `input` is the data for
 * `copy … from stdin`.
 */
export async function timePsql(url: string, sql: string, input?: Iterable<string | Buffer>): Promise<number> {
  const flags = ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', '\\o /dev/null', '-c', '\\timing on', '-c', sql];
  const printed = await runProgram('psql', [...flags, url], input);
  const ms = Number(/Time: ([\d.]+) ms/.exec(printed)?.[1]);
  if (!(ms > 0)) throw new Error(`psql said: ${printed}`);
  return ms;
}
