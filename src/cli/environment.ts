import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** The settings that the program `bookmarks` takes from environment variables. Only this file reads the environment. */
export interface Environment {
  /** `BOOKMARKS_URL`: the address of the service, unless `--url` is given. */
  url: string | undefined;
  /** `BOOKMARKS_TOKEN`: replaces the stored token, for scripts. */
  token: string | undefined;
  /** The folder of the credentials, in the XDG configuration directory or `%APPDATA%`. */
  configDir: string;
  /** `BROWSER`: the program that opens web pages, instead of the platform's default. */
  browser: string | undefined;
  /** Whether `NO_COLOR` is set, so that no text is printed in bold. */
  plain: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Reads the environment of the process. */
export function readEnvironment(env: Variables = process.env): Environment {
  const configured = process.platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME;
  // The XDG specification says that a relative path must be ignored.
  const base = configured && isAbsolute(configured) ? configured : join(env.HOME || homedir(), '.config');
  return {
    url: env.BOOKMARKS_URL || undefined,
    token: env.BOOKMARKS_TOKEN || undefined,
    configDir: join(base, 'bookmark-service'),
    browser: env.BROWSER || undefined,
    plain: Boolean(env.NO_COLOR),
  };
}
