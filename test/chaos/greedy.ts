import { setTimeout as sleep } from 'node:timers/promises';
import type { Journal } from './journal.ts';
import type { Random } from './random.ts';
import { recordFetch } from './recorded-fetch.ts';

export interface GreedyOptions {
  origin: string;
  token: string;
  journal: Journal;
  draw: Random;
  /** The number of requests that are sent at the same time. It is above the limit. */
  burst: number;
}

/** Sends bursts above the limit, whatever the responses are, like a script that ignores the limit. */
export async function sendBursts(
  { origin, token, journal, draw, burst }: GreedyOptions,
  signal: AbortSignal,
): Promise<void> {
  const recorded = recordFetch(journal, token);
  const send = async () => {
    const response = await recorded.fetch(`${origin}/api/v1/user/profile`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: '{}',
      signal: AbortSignal.timeout(30_000),
    });
    await response.arrayBuffer();
  };
  while (!signal.aborted) {
    await sleep(draw.integer(2_000, 6_000), undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await Promise.allSettled(Array.from({ length: burst }, send));
  }
}
