import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** npm's codes for a registry that it cannot reach, or that a proxy forbids. */
const UNREACHABLE =
  /npm error code (?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E403|E50\d)\b/;

/**
 * Runs `npm install` with these arguments. Returns false if the registry cannot be reached. Rejects if the installation
 * fails for another reason, because then the test must fail.
 */
export async function installFromRegistry(args: readonly string[], cwd?: string): Promise<boolean> {
  return promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...args], {
    cwd,
  }).then(
    () => true,
    (error: { stderr: string }) => {
      if (UNREACHABLE.test(error.stderr)) return false;
      throw new Error(`npm install failed: ${error.stderr}`);
    },
  );
}
