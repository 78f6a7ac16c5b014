import { spawn } from 'node:child_process';

const OPENERS: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  // Unlike `start`, it takes the address as it is: `&` and `^` mean nothing to it.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/**
 * Shows a page in the user's browser: in the program `browser`, or else in the platform's own. Resolves with whether
 * that program could be started.
 */
export function openInBrowser(browser: string | undefined, url: string): Promise<boolean> {
  const [program, ...args] = browser === undefined ? (OPENERS[process.platform] ?? ['xdg-open']) : [browser];
  const child = spawn(program!, [...args, url], { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(true));
    child.once('error', () => resolve(false));
  });
}
