import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { throughPort } from './pool.ts';
import { findFreePort, waitUntilListening } from './ports.ts';
import { noteProcess } from './processes.ts';
import { provide } from './programs.ts';
import { runDir } from './run.ts';

/**
 * Runs PgBouncer in transaction mode in front of a database until the test ends. Returns the url with which clients
 * reach the database through PgBouncer.
 */
export async function startPgBouncer(url: string): Promise<string> {
  return throughPort(url, await runPgBouncer((port) => describePooler(new URL(url), port)));
}

/**
 * Runs PgBouncer until the test ends, with the configuration that `describe` returns for a port. Returns the port, which
 * is `at` or any free one.
 */
export async function runPgBouncer(describe: (port: number) => string, at?: number): Promise<number> {
  const program = await provide('pgbouncer');
  const folder = makeFolder('pgbouncer');
  onTestFinished(() => removeFolder(folder));
  const port = at ?? (await findFreePort());
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, describe(port));
  const account = chooseServerAccount(join(folder, 'none'));
  giveFolder(account, folder);
  const as = account && { uid: account.uid, gid: account.gid };
  const child = spawn(program, ['-q', file], { stdio: 'ignore', cwd: '/', ...as });
  noteProcess(runDir(), child.pid!);
  onTestFinished(() => void child.kill('SIGKILL'));
  await waitUntilListening(port);
  return port;
}

function describePooler({ hostname, port, username, password, pathname }: URL, listenPort: number): string {
  // PgBouncer refuses an empty password in its configuration.
  const secret = password && `password='${decodeURIComponent(password)}'`;
  const server = `host=${hostname} port=${port || 5432} user=${username} ${secret}`;
  return `[databases]
${pathname.slice(1)} = ${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`;
}
