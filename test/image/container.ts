import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { listFamily, noteProcess } from '../support/processes.ts';
import { runDir } from '../support/run.ts';
import { until } from '../support/until.ts';
import { buildah } from './buildah.ts';

/** Runs containers of the image as Kubernetes does: read-only, as the image's user, without capabilities. */

/** The image's configuration. */
export interface ImageConfig {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  WorkingDir: string;
  Labels: Record<string, string>;
  Healthcheck?: { Test: string[] };
}

/** The unpacked files of an image, and its configuration. */
export interface Root extends AsyncDisposable {
  readonly path: string;
  readonly config: ImageConfig;
}

/** Unpacks an image. */
export async function openRoot(image: string): Promise<Root> {
  const container = await buildah('from', '--pull-never', image);
  const path = await buildah('mount', container);
  const inspected = JSON.parse(await buildah('inspect', '--type', 'image', image));
  return {
    path,
    config: inspected.Docker.config,
    [Symbol.asyncDispose]: async () => void (await buildah('rm', container)),
  };
}

/**
 * A script that runs in its own mount and process namespaces. It mounts /proc and /dev in the root and makes the root
 * read-only. Then it starts the program as the image's user, without capabilities.
 */
const START = `
set -eu
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -o remount,bind,ro "$ROOT"
keep=-all,+sys_chroot,+setuid,+setgid
exec setpriv --no-new-privs --bounding-set "$keep" --inh-caps -all \\
  chroot --userspec "$USER_IDS" "$ROOT" /usr/bin/env -i -C "$WORKING_DIR" "$@"
`;

/** A command in a container. */
export interface Run {
  child: ChildProcess;
  /** Sends a signal to the first process in the container. */
  signal(signal: NodeJS.Signals): Promise<void>;
  /** Resolves with the exit code and all output when the command has ended. */
  ended: Promise<{ code: number | null; output: string; errors: string }>;
}

/** Starts the image's entrypoint, or another program of the image, with these arguments. */
export function start(
  { path, config }: Root,
  args: readonly string[],
  env: Record<string, string> = {},
  entrypoint: readonly string[] = config.Entrypoint,
): Run {
  const given = [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const child = spawn(
    'unshare',
    ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', START, 'sh', ...given, ...entrypoint, ...args],
    {
      env: { PATH: process.env.PATH, ROOT: path, USER_IDS: config.User, WORKING_DIR: config.WorkingDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  noteProcess(runDir(), child.pid!);
  const collected = Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'exit')]);
  return {
    child,
    signal: async (signal) => {
      // `child` is the program `unshare`. Its own child is the first process in the container.
      const pid = await until(() => listFamily(child.pid!)[1]);
      process.kill(pid, signal);
    },
    ended: collected.then(([output, errors, [code]]) => ({ code, output, errors })),
  };
}
