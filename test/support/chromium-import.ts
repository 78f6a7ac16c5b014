import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noteProcess } from './processes.ts';
import { runDir } from './run.ts';
import { until } from './until.ts';

/** The file in which an administrator can set what Debian's Chromium does with a new profile. */
const PREFERENCES_FILE = '/etc/chromium/master_preferences';

const ONE_BOOKMARK =
  '<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p><DT><A HREF="https://example.org/">Example</A></DL><p>';

/**
 * Returns why Chromium cannot import on this machine. Returns undefined if it can. Some versions, such as 156, read the
 * file at the first start and store nothing.
 */
export async function whyNotChromium(program: string, folder: string): Promise<string | undefined> {
  if (!existsSync(PREFERENCES_FILE)) return `it needs Debian's Chromium, with ${PREFERENCES_FILE}`;
  const mount = spawnSync('unshare', ['--map-root-user', '--mount', 'true']);
  if (mount.status !== 0) return 'this machine allows no mount namespaces';
  const html = join(folder, 'one-bookmark.html');
  writeFileSync(html, ONE_BOOKMARK);
  try {
    await importIntoChromium(program, html, join(folder, 'chromium-trial'));
    return undefined;
  } catch (error) {
    return `a trial import failed: ${String(error)}`;
  }
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
