import { setTimeout as sleep } from 'node:timers/promises';
import { Samples } from '../bench/harness/stats.ts';

/** The results of the requests of one class. */
export class Outcomes {
  readonly latencies = new Samples();
  failures = 0;
  /** Error codes and how often each occurred. */
  readonly reasons = new Map<string, number>();

  fail(reason: string): void {
    this.failures += 1;
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }

  /**
   * Records the result of a request. `dueAt` is the time when the request was due, in milliseconds of
   * `performance.now()`.
   */
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
 * Calls `send` at random moments, `perSecond` times a second on average, until the signal aborts. Never waits for
 * earlier requests. Latency must be measured from `dueAt`, the time when the request was due. If this process sends a
 * request late, the latency then includes the delay.
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
