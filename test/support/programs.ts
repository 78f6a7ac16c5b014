import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

interface Requirement {
  names: readonly string[];
  /** Further programs that its folder must hold. */
  beside?: readonly string[];
  debianPackage: string;
  instead: string | undefined;
}

/** What tests need of the system: names that serve equally well, and the Debian package that brings the first. */
const PROGRAMS = {
  redis: {
    names: ['redis-server', 'valkey-server'],
    debianPackage: 'redis-server',
    instead: 'TEST_REDIS_URL',
  },
  curl: { names: ['curl'], debianPackage: 'curl', instead: undefined },
  nginx: { names: ['nginx'], debianPackage: 'nginx-light', instead: undefined },
  haproxy: { names: ['haproxy'], debianPackage: 'haproxy', instead: undefined },
  pgbouncer: { names: ['pgbouncer'], debianPackage: 'pgbouncer', instead: undefined },
  // Only its tool for rules is used.
  promtool: { names: ['promtool'], debianPackage: 'prometheus', instead: undefined },
  // The server that has pg_dump and the like of its version beside it: the embedded one comes without them.
  postgresql: {
    names: ['postgres'],
    beside: ['initdb', 'pg_dump', 'pg_restore', 'psql'],
    debianPackage: 'postgresql',
    instead: undefined,
  },
} as const satisfies Record<string, Requirement>;

/** A program of the system that tests run. */
export type Program = keyof typeof PROGRAMS;

// Debian keeps servers in folders that an ordinary user's PATH leaves out.
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Debian keeps PostgreSQL in a folder a version. */
const DEBIAN_POSTGRESQL = '/usr/lib/postgresql';

/** The path of a program that this machine has, or nothing. */
export function findProgram(program: Program): string | undefined {
  const { names, beside = [] }: Requirement = PROGRAMS[program];
  const folders = [...FOLDERS, ...listPostgresqlFolders()].filter((folder) =>
    beside.every((name) => isExecutable(join(folder, name))),
  );
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find(isExecutable);
}

/** Newest version first. */
function listPostgresqlFolders(): string[] {
  const versions = existsSync(DEBIAN_POSTGRESQL) ? readdirSync(DEBIAN_POSTGRESQL).map(Number) : [];
  return versions
    .filter((version) => version > 0)
    .sort((one, other) => other - one)
    .map((version) => join(DEBIAN_POSTGRESQL, String(version), 'bin'));
}

/**
 * The path of a program, installed first where this is Debian and we are root. Rejects with what to install where
 * that cannot be, so that a test which needs it fails by name instead of being left out.
 */
export async function provide(program: Program): Promise<string> {
  const found = findProgram(program);
  if (found) return found;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) throw new Error(describeMissing(program));
  await installPackage(PROGRAMS[program].debianPackage);
  const installed = findProgram(program);
  if (!installed) throw new Error(describeMissing(program));
  return installed;
}

function describeMissing(program: Program): string {
  const { names, debianPackage, instead } = PROGRAMS[program];
  const otherWay = instead ? `, or set ${instead}` : '';
  return `these tests need ${names.join(' or ')} on the PATH: install it (Debian: apt-get install ${debianPackage})${otherWay}`;
}

/** Test files that run side by side take turns. A service that the package starts by itself is not ours, nor used. */
async function installPackage(name: string): Promise<void> {
  const aptGet = (...args: string[]) =>
    promisify(execFile)(
      'flock',
      [join(tmpdir(), 'bookmark-service-apt.lock'), 'apt-get', '-q', '-y', ...args],
      {
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      },
    );
  const install = () => aptGet('-o', 'DPkg::Lock::Timeout=300', 'install', '--no-install-recommends', name);
  console.log(`installing the system package ${name} for the tests`);
  // A fresh machine has no package lists yet, an old one lists what is gone.
  await install().catch(() => aptGet('update').then(install));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
