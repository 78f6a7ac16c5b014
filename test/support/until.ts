import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `ask` every 20 ms until it returns neither undefined nor false, and resolves with the value. Rejects after
 * `limitMs`. Tests use `until` to wait for changes that no event reports.
 */
export async function until<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = 120_000,
): Promise<T> {
  const giveUpAt = performance.now() + limitMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > giveUpAt) throw new Error(`not so within ${limitMs} ms: ${ask}`);
    await sleep(20);
  }
}
