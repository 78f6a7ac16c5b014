import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Resolves with what `ask` finds, once it finds something; for what sends no event when it happens. Asks every 20 ms,
 * rejects after `limitMs`.
 */
export async function until<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = 60_000,
): Promise<T> {
  const giveUpAt = performance.now() + limitMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > giveUpAt) throw new Error(`not so within ${limitMs} ms: ${ask}`);
    await sleep(20);
  }
}
