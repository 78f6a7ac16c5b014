import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { EmbeddedPostgresError } from './errors.ts';

/** The operating system's user that runs the server. */
export interface ServerAccount {
  uid: number;
  gid: number;
  name: string;
}

/**
 * The account that runs the server: undefined for that of this process. Postgres refuses to run as root; for root it is
 * the owner of data that is there already, else `postgres`, else `nobody`, where the system knows them.
 */
export function chooseServerAccount(clusterDir: string): ServerAccount | undefined {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError('the embedded PostgreSQL needs Linux or macOS: set DATABASE_URL instead');
  }
  if (process.getuid?.() !== 0) return undefined;
  const account = findOwner(clusterDir) ?? lookUpAccount('postgres') ?? lookUpAccount('nobody');
  if (account) return account;
  throw new EmbeddedPostgresError(
    'PostgreSQL does not run as root and this system has neither a user `postgres` nor `nobody`: ' +
      'start the service as an ordinary user, or set DATABASE_URL',
  );
}

/** Whether the account can read a folder and pass through it; true without an account. */
export function canReach(account: ServerAccount | undefined, folder: string): boolean {
  if (!account) return true;
  const { uid, gid } = account;
  const script = 'cd "$1" && test -r . && test -x .';
  return spawnSync('/bin/sh', ['-c', script, 'sh', folder], { uid, gid, cwd: '/' }).status === 0;
}

/** The options of `spawn` that run a program as the account. */
export function asAccount(account: ServerAccount | undefined): { uid?: number; gid?: number } {
  return account ? { uid: account.uid, gid: account.gid } : {};
}

/** Gives a folder and all in it to the account. */
export function giveFolder(account: ServerAccount | undefined, folder: string): void {
  if (account) execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, folder]);
}

function findOwner(folder: string): ServerAccount | undefined {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat && stat.uid !== 0 ? { uid: stat.uid, gid: stat.gid, name: `with id ${stat.uid}` } : undefined;
}

function lookUpAccount(name: string): ServerAccount | undefined {
  const read = (option: string) => {
    const result = spawnSync('id', [option, name], { encoding: 'utf8' });
    return result.status === 0 ? Number(result.stdout) : Number.NaN;
  };
  const account = { uid: read('-u'), gid: read('-g'), name };
  return account.uid > 0 && Number.isInteger(account.gid) ? account : undefined;
}
