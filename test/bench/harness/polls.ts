import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Latency } from './stats.ts';

/** Clients that poll. Each holds one poll, and polls again after each response. */

/** One client: its poll, and the request that causes the poll's response. */
export interface Poller {
  port: number;
  path: string;
  /** The body of the first poll. Each later poll sends the cursor of the previous response. */
  body: { cursor: number; [field: string]: unknown };
  token?: string;
  wake: { port: number; path: string; body: object; token?: string };
}

/** What the clients observed after their `wake` requests. */
export interface WakeReport {
  wakes: number;
  latency: Latency;
  /** The time from the first `wake` request to the last response to a poll. */
  seconds: number;
}

type Order = { kind: 'hold'; pollers: Poller[] } | { kind: 'wake'; count: number; perSecond: number };

const PROGRAM = fileURLToPath(new URL('../poll-process.ts', import.meta.url));

/** A process of polling clients. Disposing closes their connections. */
export interface PollProcess extends AsyncDisposable {
  /**
   * Wakes `count` clients one after another, at a rate of `perSecond`, each with its own `wake` request. If `perSecond`
   * is 0, this function sends only the first client's `wake` request, and waits until all clients have a response.
   */
  wake(count: number, perSecond: number): Promise<WakeReport>;
}

/** Starts clients. Resolves when all polls have been sent and the server has had a moment to accept them. */
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
