import { randomBytes } from 'node:crypto';
import type { Engine } from '../containers/engine.ts';

/** A started container. */
export interface Container {
  /** Sends a signal to its first process. */
  signal(name: NodeJS.Signals): Promise<void>;
  /** The result of the image's health check: `starting`, `healthy` or `unhealthy`. */
  readHealth(): Promise<string>;
  isRunning(): Promise<boolean>;
  /**
   * Waits until the container has ended. Resolves with its exit code and everything that it has printed. `stdout` is the
   * part that it has printed to its standard output.
   */
  wait(): Promise<{ code: number; output: string; stdout: string }>;
}

/**
 * Starts a container as a cluster does: with a read-only file system and without capabilities. It uses this machine's
 * network, where the servers of the test listen.
 */
export async function startContainer(
  engine: Engine,
  image: string,
  args: readonly string[],
  env: Record<string, string> = {},
  entrypoint?: string,
): Promise<Container> {
  const name = `bookmarks-${randomBytes(4).toString('hex')}`;
  const confinement = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];
  const variables = Object.entries(env).map(([key, value]) => `--env=${key}=${value}`);
  const program = entrypoint === undefined ? [] : [`--entrypoint=${entrypoint}`];
  const options = ['--detach', `--name=${name}`, '--network=host', ...confinement, ...variables, ...program];
  await engine.docker('run', ...options, image, ...args);
  const inspect = (field: string) => engine.docker('inspect', `--format={{.State.${field}}}`, name);
  return {
    signal: async (signal) => void (await engine.docker('kill', `--signal=${signal}`, name)),
    readHealth: () => inspect('Health.Status'),
    isRunning: async () => (await inspect('Running')) === 'true',
    wait: async () => {
      const code = Number(await engine.docker('wait', name));
      const output = await engine.run('docker', ['logs', name]);
      const stdout = await engine.docker('logs', name);
      await engine.docker('rm', name);
      return { code, output, stdout };
    },
  };
}
