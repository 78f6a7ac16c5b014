import http from 'node:http';
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
  /** The variables that name proxies, in upper and lower case, for example `HTTPS_PROXY`. Empty if no proxy is named. */
  proxies: Record<string, string>;
  /** Whether Node itself uses these proxies, by `NODE_USE_ENV_PROXY` or `--use-env-proxy`. */
  hasNodeProxies: boolean;
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
    proxies: readProxies(env),
    hasNodeProxies: env.NODE_USE_ENV_PROXY === '1' && NODE_HAS_PROXIES,
  };
}

/** Whether this version of Node knows `NODE_USE_ENV_PROXY`. */
const NODE_HAS_PROXIES = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');

function readProxies(env: Variables): Record<string, string> {
  const named = Object.entries(env).filter(([name, value]) => /^(https?|no)_proxy$/i.test(name) && value);
  const namesProxy = named.some(([name]) => !/^no_/i.test(name));
  return namesProxy ? (Object.fromEntries(named) as Record<string, string>) : {};
}

/**
 * Makes `fetch` use the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name, as Node itself does with
 * `NODE_USE_ENV_PROXY=1`. Returns a note for the user if this version of Node cannot do that.
 */
export function useProxies({ proxies, hasNodeProxies }: Environment): string | undefined {
  if (Object.keys(proxies).length === 0 || hasNodeProxies) return undefined;
  // Node has this function since 24.14.
  if (http.setGlobalProxyFromEnv !== undefined) {
    http.setGlobalProxyFromEnv(proxies);
    return undefined;
  }
  return (
    `Node ${process.versions.node} ignores HTTP_PROXY and HTTPS_PROXY. Node 22.21 or newer uses them ` +
    'if NODE_USE_ENV_PROXY=1 is set; Node 24.14 or newer always does here.'
  );
}
