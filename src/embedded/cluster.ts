import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { giveFolder, type ServerAccount } from './server-account.ts';

const USER = 'bookmarks';
const DATABASE = 'bookmarks';

/** The folder that contains the cluster (PostgreSQL's name for the files of one server) and its password. */
export const clusterDirOf = (dataDir: string): string => join(dataDir, 'postgres');

/** The folder that the server itself calls its data directory. */
export const pgdataOf = (dataDir: string): string => join(clusterDirOf(dataDir), 'data');

/** The url of the database while its server listens on the port. It contains the password. */
export function urlOf(dataDir: string, port: number): string {
  const password = readFileSync(join(clusterDirOf(dataDir), 'password'), 'utf8');
  return `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`;
}

/**
 * Creates the cluster of a data folder if the folder has none. A draft folder contains the new cluster until it is
 * complete, and is then renamed. So a crash leaves at most a draft.
 */
export async function makeCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount,
): Promise<void> {
  if (existsSync(clusterDirOf(dataDir))) return;
  const draft = await mkdtemp(join(dataDir, 'draft-postgres-'));
  const pgdata = join(draft, 'data');
  const passwordFile = join(draft, 'password');
  writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600, flush: true });
  giveFolder(account, draft);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  await run(binaries.initdb, ['-D', pgdata, ...locale, ...access], account);
  const statement = `create database ${DATABASE}\n`;
  // With `--single`, the program executes the statements from its standard input, without a server.
  await run(
    binaries.postgres,
    ['--single', '-D', pgdata, '-c', 'exit_on_error=true', 'postgres'],
    account,
    statement,
  );
  await rename(draft, clusterDirOf(dataDir));
  // Without this sync, a power loss could undo the renaming. The next start would then delete the draft with the data.
  syncFolder(dataDir);
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

async function run(program: string, args: string[], account: ServerAccount, input = ''): Promise<void> {
  // `detached` gives the program its own process group, so that Ctrl-C ends only the service. If the service ends
  // before the program, the next start removes the draft.
  const child = spawn(program, args, { ...account, env: PROGRAM_ENVIRONMENT, detached: true, cwd: '/' });
  // If the program ends early, writing its input fails. That error is ignored: the exit code reports the failure.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.resume();
  const [message, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new EmbeddedPostgresError(`${program} failed: ${message.trim()}`);
}
