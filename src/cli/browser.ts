import { spawn } from 'node:child_process';

/** For each platform, the program that opens a page in the default browser, and its arguments before the url. */
const OPENERS: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  // Windows' command `start` would change `&` and `^` in a url. `rundll32` does not.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/**
 * Opens a page in `browser`, or in the platform's default browser. Resolves with true if the program started. The
 * program keeps running after this process ends.
 */
export function openInBrowser(browser: string | undefined, url: string): Promise<boolean> {
  const [program, ...args] = browser === undefined ? (OPENERS[process.platform] ?? ['xdg-open']) : [browser];
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(true));
    child.once('error', () => resolve(false));
  });
}
