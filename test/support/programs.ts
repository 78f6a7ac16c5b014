import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

interface Requirement {
  names: readonly string[];
  /** Other programs that must be in the same folder. */
  companions?: readonly string[];
  debianPackage: string;
  /** The environment variable that users can set instead of installing the program. */
  instead: string | undefined;
}

const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const;

/** The system's programs that tests need: names of equivalent programs, and the Debian package of the first one. */
const PROGRAMS = {
  redis: {
    names: ['redis-server', 'valkey-server'],
    debianPackage: 'redis-server',
    instead: 'TEST_REDIS_URL',
  },
  curl: { names: ['curl'], debianPackage: 'curl', instead: undefined },
  zsh: { names: ['zsh'], debianPackage: 'zsh', instead: undefined },
  fish: { names: ['fish'], debianPackage: 'fish', instead: undefined },
  mandoc: { names: ['mandoc'], debianPackage: 'mandoc', instead: undefined },
  nginx: { names: ['nginx'], debianPackage: 'nginx-light', instead: undefined },
  haproxy: { names: ['haproxy'], debianPackage: 'haproxy', instead: undefined },
  pgbouncer: { names: ['pgbouncer'], debianPackage: 'pgbouncer', instead: undefined },
  // The container engine and its client. Older releases of Debian have both in one package.
  dockerd: { names: ['dockerd'], debianPackage: 'docker.io', instead: undefined },
  docker: { names: ['docker'], debianPackage: 'docker-cli', instead: undefined },
  dockerCompose: { names: ['docker-compose'], debianPackage: 'docker-compose', instead: undefined },
  debootstrap: { names: ['debootstrap'], debianPackage: 'debootstrap', instead: undefined },
  // Of Prometheus, tests need only this tool, which checks alerting rules.
  promtool: { names: ['promtool'], debianPackage: 'prometheus', instead: undefined },
  // Tests of the page run only if this browser is installed. Only CI installs it, because it is large. The headless
  // shell opens a tab in a third less time than Chromium.
  chromium: {
    names: ['chromium-headless-shell', 'chrome-headless-shell', ...CHROMIUM_NAMES],
    debianPackage: 'chromium-headless-shell',
    instead: 'CHROMIUM',
  },
  // Programs that read and write bookmark files. Tests use them only if they are installed.
  firefox: { names: ['firefox-esr', 'firefox'], debianPackage: 'firefox-esr', instead: undefined },
  buku: { names: ['buku'], debianPackage: 'buku', instead: undefined },
  php: { names: ['php'], debianPackage: 'php-cli', instead: undefined },
  // Languages of generated clients. Tests use them only if they are installed.
  java: { names: ['java'], debianPackage: 'default-jre-headless', instead: undefined },
  python: { names: ['python3'], debianPackage: 'python3', instead: undefined },
  go: { names: ['go'], debianPackage: 'golang-go', instead: undefined },
  // A PostgreSQL server, together with `pg_dump` and other programs that the embedded Postgres lacks.
  postgresql: {
    names: ['postgres'],
    companions: ['initdb', 'pg_dump', 'pg_restore', 'psql'],
    debianPackage: 'postgresql',
    instead: undefined,
  },
} as const satisfies Record<string, Requirement>;

/** A system program that tests run. */
export type Program = keyof typeof PROGRAMS;

// Debian installs servers in folders that are not in a normal user's PATH.
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Debian installs each version of PostgreSQL in its own folder. */
const DEBIAN_POSTGRESQL = '/usr/lib/postgresql';

/** Returns the path of a program on this machine. Returns undefined if the program is not installed. */
export function findProgram(program: Program): string | undefined {
  const { names, companions = [] }: Requirement = PROGRAMS[program];
  const folders = [...FOLDERS, ...listPostgresqlFolders()].filter((folder) =>
    companions.every((name) => isExecutable(join(folder, name))),
  );
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find(isExecutable);
}

/** Returns the folders of PostgreSQL's programs on Debian, newest version first. */
function listPostgresqlFolders(): string[] {
  const versions = existsSync(DEBIAN_POSTGRESQL) ? readdirSync(DEBIAN_POSTGRESQL).map(Number) : [];
  return versions
    .filter((version) => version > 0)
    .sort((one, other) => other - one)
    .map((version) => join(DEBIAN_POSTGRESQL, String(version), 'bin'));
}

/**
 * Returns the path of a program. Installs a missing program if the user is root on Debian. If the program is still
 * missing, rejects with a message that says what to install, so that the test fails instead of being skipped.
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

/** Installs a Debian package. A lock lets only one process install at a time. */
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
  // A fresh machine has no package lists, and outdated lists contain packages that no longer exist.
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
