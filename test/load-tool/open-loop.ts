import { setTimeout as sleep } from 'node:timers/promises';
import { Samples } from '../bench/harness/stats.ts';

/** What happened to the requests of one class. */
export class Outcomes {
  readonly latencies = new Samples();
  failures = 0;
  /** Codes of failures, with how often each came. */
  readonly reasons = new Map<string, number>();

  fail(reason: string): void {
    this.failures += 1;
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }

  /** Records how a request ended that was due at `dueAt`, in milliseconds of `performance.now()`. */
  async record(dueAt: number, sent: Promise<unknown>): Promise<void> {
    try {
      await sent;
      this.latencies.push(performance.now() - dueAt);
    } catch (error) {
      this.fail((error as { code?: string }).code ?? String(error));
    }
  }
}

/**
 * Calls `send` at random moments, `perSecond` times a second on average, until the signal aborts, and never waits for what was
 * sent before. `dueAt` is when the request was due: a latency from then on counts what a late start cost as well, so a service
 * that stands still is measured with all the requests that would have come meanwhile.
 */
export async function runOpenLoop(
  perSecond: number,
  send: (dueAt: number) => void,
  signal: AbortSignal,
  random: () => number = Math.random,
): Promise<void> {
  let dueAt = performance.now();
  while (!signal.aborted) {
    dueAt += (-Math.log(1 - random()) / perSecond) * 1_000;
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted) send(dueAt);
  }
}
