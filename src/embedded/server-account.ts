import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';

/** The operating-system user that runs the server, as options of `spawn`. Empty for the current user. */
export interface ServerAccount {
  uid?: number;
  gid?: number;
}

/**
 * Chooses the account that runs the server. Postgres refuses to run as root. So if the service runs as root, the
 * server runs as the owner of existing data, or else as `postgres` or `nobody`.
 */
export function chooseServerAccount(clusterDir: string): ServerAccount {
  if (process.getuid?.() !== 0) return {};
  const owner = statSync(clusterDir, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  return lookUpAccount('postgres') ?? lookUpAccount('nobody') ?? {};
}

/** Whether the account can read and enter a folder. */
export function canReach(account: ServerAccount, folder: string): boolean {
  if (account.uid === undefined) return true;
  const script = 'test -r "$1" && test -x "$1"';
  return spawnSync('/bin/sh', ['-c', script, 'sh', folder], { ...account, cwd: '/' }).status === 0;
}

/** Gives a folder and its contents to the account. */
export function giveFolder({ uid, gid }: ServerAccount, folder: string): void {
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, folder]);
}

function lookUpAccount(name: string): ServerAccount | undefined {
  const read = (option: string) => Number(spawnSync('id', [option, name], { encoding: 'utf8' }).stdout);
  const account = { uid: read('-u'), gid: read('-g') };
  return account.uid > 0 && account.gid > 0 ? account : undefined;
}
