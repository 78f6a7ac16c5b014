import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Binaries, PROGRAM_ENVIRONMENT } from './binaries.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { asAccount, giveFolder, type ServerAccount } from './server-account.ts';

/** The major version of the installed programs. */
const MAJOR_VERSION = '18';
const USER = 'bookmarks';
const DATABASE = 'bookmarks';

/** The files of a PostgreSQL server, which its manual calls a cluster, and the password of its only user. */
export interface Cluster {
  pgdata: string;
  password: string;
}

/** The folder of the cluster in a data folder. */
export function clusterDirOf(dataDir: string): string {
  return join(dataDir, 'postgres');
}

/**
 * Opens the cluster of a data folder; makes it first where there is none, under the name of a draft, which is renamed when
 * it is complete. So a crash leaves a draft at most, which the next start removes. `durable`: the draft is written through
 * to the disk before it is renamed.
 */
export async function openCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount | undefined,
  durable: boolean,
): Promise<Cluster> {
  removeDrafts(dataDir);
  const clusterDir = clusterDirOf(dataDir);
  if (!existsSync(clusterDir)) await createCluster(dataDir, binaries, account, durable);
  else if (account && statSync(clusterDir).uid !== account.uid) giveFolder(account, clusterDir);
  return readCluster(dataDir);
}

/** Reads the cluster of a data folder; throws where it belongs to another user, or to another version of PostgreSQL. */
export function readCluster(dataDir: string): Cluster {
  const clusterDir = clusterDirOf(dataDir);
  const pgdata = join(clusterDir, 'data');
  const cluster = { pgdata, password: readOwn(clusterDir, 'password') };
  const version = readOwn(clusterDir, 'data/PG_VERSION').trim();
  if (version === MAJOR_VERSION) return cluster;
  throw new EmbeddedPostgresError(
    `the data in ${clusterDir} was made by PostgreSQL ${version}, this is ${MAJOR_VERSION}: ` +
      'set DATA_DIR to another folder, or move the data over with pg_dump',
  );
}

/** The url of the cluster's database while its server listens at the port. */
export function urlOf(cluster: Cluster, port: number): string {
  return `postgres://${USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE}`;
}

function readOwn(clusterDir: string, file: string): string {
  try {
    return readFileSync(join(clusterDir, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    throw new EmbeddedPostgresError(
      `the data in ${clusterDir} belongs to another user: start the service as that user or as root, ` +
        'or set DATA_DIR to a folder of your own',
    );
  }
}

function removeDrafts(dataDir: string): void {
  for (const name of readdirSync(dataDir).filter((each) => each.startsWith('draft-'))) {
    try {
      rmSync(join(dataDir, name), { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // The initdb of a killed service may still be writing into it. The next start tries again.
    }
  }
}

async function createCluster(
  dataDir: string,
  binaries: Binaries,
  account: ServerAccount | undefined,
  durable: boolean,
): Promise<void> {
  const draft = await mkdtemp(join(dataDir, 'draft-postgres-'));
  const pgdata = join(draft, 'data');
  const passwordFile = join(draft, 'password');
  writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600, flush: durable });
  giveFolder(account, draft);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const sync = durable ? [] : ['--no-sync'];
  await runProgram(binaries.initdb, ['-D', pgdata, ...locale, ...access, ...sync], account);
  // The server's single-user mode creates the database, so that the draft is complete before it is renamed.
  const settings = ['-c', 'exit_on_error=true', '-c', `fsync=${durable ? 'on' : 'off'}`];
  const create = `create database ${DATABASE}\n`;
  await runProgram(binaries.postgres, ['--single', '-D', pgdata, ...settings, 'postgres'], account, create);
  if (durable) syncFolder(draft);
  await rename(draft, clusterDirOf(dataDir));
  // Else a power loss could undo the renaming, and the next start would remove the draft with the data in it.
  if (durable) for (const folder of [dataDir, dirname(dataDir)]) syncFolder(folder);
}

/** Writes the entries of a folder through to the disk, where the file system and the rights allow it. */
function syncFolder(folder: string): void {
  try {
    const handle = openSync(folder, 'r');
    fsyncSync(handle);
    closeSync(handle);
  } catch {
    // The file system writes them some seconds later.
  }
}

async function runProgram(
  program: string,
  args: string[],
  account: ServerAccount | undefined,
  input = '',
): Promise<void> {
  // A process group of its own: Ctrl-C at the terminal ends the service alone, and the next start removes the draft.
  const child = spawn(program, args, {
    ...asAccount(account),
    env: PROGRAM_ENVIRONMENT,
    detached: true,
    cwd: '/',
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.resume();
  const [message, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]).catch(
    (cause: Error) => {
      throw new EmbeddedPostgresError(`cannot run ${program}: ${cause.message}`);
    },
  );
  if (code !== 0) throw new EmbeddedPostgresError(`${program} failed: ${message.trim()}`);
}
