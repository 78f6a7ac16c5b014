import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { systemCodeOf } from '../domain/thrown.ts';

/**
 * Replaces a file as a whole. `write` writes a draft in the same folder, which is then renamed. So after a failure or a
 * crash, the file is either the old or the new one. Only the owner can read the new file. Errors name the file, never
 * the draft.
 */
export async function replaceFile<T>(path: string, write: (draft: FileHandle) => Promise<T>): Promise<T> {
  const draftPath = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const draft = await open(draftPath, 'wx', 0o600);
    const result = await write(draft).finally(() => draft.close());
    await rename(draftPath, path);
    return result;
  } catch (error) {
    await rm(draftPath, { force: true });
    // Only errors of the operating system about a file have a `syscall`. Requests that fail have their own errors.
    const isOfDraft = systemCodeOf(error) !== undefined && error instanceof Error && 'syscall' in error;
    throw isOfDraft ? Object.assign(error, { path }) : error;
  }
}
