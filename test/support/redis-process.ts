import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freezeFamily, isRunning, noteProcess, sendSignal, thawFamily } from './processes.ts';
import { runDir } from './run.ts';

/** One run of the server, as a process or in a container. */
export interface RedisRun {
  /** Sends the signal. Resolves when the server has ended, or immediately if it has already ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Tells whether the server is still running. */
  isRunning(): Promise<boolean>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

/** Runs a Redis server as a child of this process. */
export async function startRedisProcess(program: string, args: string[], folder: string): Promise<RedisRun> {
  const child = spawn(program, args, { stdio: 'ignore', cwd: folder });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await once(child, 'spawn');
  const pid = child.pid!;
  noteProcess(runDir(), pid);
  return {
    end: async (signal) => {
      sendSignal(pid, signal);
      await ended;
    },
    isRunning: async () => isRunning(pid),
    freeze: () => freezeFamily(pid),
    thaw: async () => thawFamily(pid),
  };
}
