import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noteProcess } from './processes.ts';
import { runDir } from './run.ts';
import { until } from './until.ts';

/** The file in which an administrator can set what Debian's Chromium does with a new profile. */
const PREFERENCES_FILE = '/etc/chromium/master_preferences';

/** Returns why Chromium cannot import on this machine. Returns undefined if it can. */
export function whyNotChromium(): string | undefined {
  if (!existsSync(PREFERENCES_FILE)) return `it needs Debian's Chromium, with ${PREFERENCES_FILE}`;
  const mount = spawnSync('unshare', ['--map-root-user', '--mount', 'true']);
  return mount.status === 0 ? undefined : 'this machine allows no mount namespaces';
}

/**
 * Lets Chromium import a bookmark file into a new profile, and returns the path of the profile's file `Bookmarks`.
 * Chromium imports only at its first start, and only if the administrator's file asks for an import. So a file that
 * asks for an import is mounted over the administrator's file, for Chromium's process alone.
 */
export async function importIntoChromium(program: string, html: string, profile: string): Promise<string> {
  mkdirSync(profile);
  const preferences = join(profile, 'preferences.json');
  writeFileSync(preferences, JSON.stringify({ distribution: { import_bookmarks_from_file: html } }));
  const script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"';
  const chromium = [
    program,
    '--headless=new',
    '--no-sandbox',
    '--force-first-run',
    `--user-data-dir=${profile}`,
  ];
  const child = spawn(
    'unshare',
    ['--map-root-user', '--mount', 'sh', '-c', script, 'sh', preferences, PREFERENCES_FILE, ...chromium],
    { env: { PATH: process.env.PATH, HOME: profile }, stdio: 'ignore' },
  );
  noteProcess(runDir(), child.pid!);
  const ended = once(child, 'exit');
  try {
    const file = join(profile, 'Default', 'Bookmarks');
    await until(() => {
      if (child.exitCode !== null) throw new Error(`Chromium ended with ${child.exitCode}`);
      return existsSync(file);
    }, 180_000);
    return file;
  } finally {
    child.kill();
    await ended;
  }
}
