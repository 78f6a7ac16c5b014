import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Makes an empty folder that every user may enter. Tests that run as root start their servers as another user, who
 * needs access.
 */
export function makeFolder(name: string, parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, `bookmark-${name}-`));
  chmodSync(folder, 0o755);
  return folder;
}

/** Removes a folder and everything in it. Retries, because a server that is ending may still be removing its files. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
