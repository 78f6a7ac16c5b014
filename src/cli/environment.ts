import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** What the command line takes from the environment. No other file of it reads the environment. */
export interface Environment {
  /** `BOOKMARKS_URL`: the service, where no option names it. */
  url: string | undefined;
  /** `BOOKMARKS_TOKEN`: used instead of a stored token, for scripts. */
  token: string | undefined;
  /** The folder of the credentials: in the XDG base directory for configuration, or its Windows counterpart. */
  configDir: string;
  /** `BROWSER`: the program that shows an address, where the platform's own is not wanted. */
  browser: string | undefined;
  /** `NO_COLOR`: no bold text. */
  plain: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Reads the environment of the process. */
export function readEnvironment(env: Variables = process.env): Environment {
  const named = process.platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME;
  // The XDG specification says to ignore a relative path.
  const base = named && isAbsolute(named) ? named : join(env.HOME || homedir(), '.config');
  return {
    url: env.BOOKMARKS_URL || undefined,
    token: env.BOOKMARKS_TOKEN || undefined,
    configDir: join(base, 'bookmark-service'),
    browser: env.BROWSER || undefined,
    plain: Boolean(env.NO_COLOR),
  };
}
