import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Latency } from './stats.ts';

/** Polling clients: each holds one poll, and polls again after each response. */

/** One client: its poll, and the request that wakes it. */
export interface Poller {
  port: number;
  path: string;
  /** The body without the cursor. */
  body: { cursor: number; [field: string]: unknown };
  token?: string;
  wake: { port: number; path: string; body: object; token?: string };
}

/** What the clients observed. */
export interface WakeReport {
  wakes: number;
  latency: Latency;
  /** From the first trigger to the last response. */
  seconds: number;
}

type Order = { kind: 'hold'; pollers: Poller[] } | { kind: 'wake'; count: number; perSecond: number };

const PROGRAM = fileURLToPath(new URL('../poll-process.ts', import.meta.url));

/** A process of polling clients. Disposing closes their connections. */
export interface PollProcess extends AsyncDisposable {
  /**
   * Wakes `count` clients in turn, `perSecond` of them, each by its own trigger. With 0, sends one trigger of the first
   * client and awaits all clients.
   */
  wake(count: number, perSecond: number): Promise<WakeReport>;
}

/** Starts clients. Resolves when all polls were sent and the server has had a moment to accept them. */
export async function holdPolls(pollers: Poller[]): Promise<PollProcess> {
  const child = fork(PROGRAM, { serialization: 'advanced' });
  await order(child, { kind: 'hold', pollers });
  return {
    wake: (count, perSecond) => order(child, { kind: 'wake', count, perSecond }) as Promise<WakeReport>,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function order(child: ChildProcess, what: Order): Promise<unknown> {
  const ended = new AbortController();
  const exit = once(child, 'exit', { signal: ended.signal }).then(
    ([code]) => Promise.reject(new Error(`the polling process ended with ${code}`)),
    () => new Promise<never>(() => {}),
  );
  child.send(what);
  try {
    const [response] = await Promise.race([once(child, 'message'), exit]);
    return response;
  } finally {
    ended.abort();
  }
}
