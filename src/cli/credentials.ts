import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../domain/thrown.ts';
import { CliError } from './faults.ts';
import { replaceFile } from './replace-file.ts';

/** What `bookmarks login` stores for later commands. */
export interface Credentials {
  base_url: string;
  token: string;
  email: string;
}

const fileIn = (configDir: string): string => join(configDir, 'credentials.json');

/** Reads the stored credentials. Returns undefined if there are none. */
export async function readCredentials(configDir: string): Promise<Credentials | undefined> {
  const path = fileIn(configDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw new CliError(`${path} cannot be read: ${messageOf(error)}`, undefined, 'FAILED');
  }
  try {
    const { base_url, token, email } = JSON.parse(text);
    if ([base_url, token, email].every((field) => typeof field === 'string'))
      return { base_url, token, email };
  } catch {
    // Invalid JSON is reported below, like a missing field.
  }
  throw new CliError(`${path} is damaged`, 'Log in again: bookmarks login', 'FAILED');
}

/**
 * Stores credentials in a file that only its owner can read. The write is atomic: after a crash, the file is either the
 * old or the new one.
 */
export async function storeCredentials(configDir: string, credentials: Credentials): Promise<void> {
  await mkdir(configDir, { recursive: true, mode: 0o700 });
  await replaceFile(fileIn(configDir), (draft) => draft.writeFile(`${JSON.stringify(credentials)}\n`));
}

/** Removes the stored credentials. */
export async function removeCredentials(configDir: string): Promise<void> {
  await rm(fileIn(configDir), { force: true });
}
