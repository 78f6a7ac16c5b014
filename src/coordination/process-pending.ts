import { PENDING_KINDS, type PendingKind } from './pending-kinds.ts';
import type { Clock, PendingValues } from './port.ts';

interface Kept {
  value: string;
  untilMs: number;
}

/**
 * Pending values in the memory of the only replica. A restart forgets them, and people who were signing in start again.
 */
export class ProcessPendingValues implements PendingValues {
  readonly #clock: Clock;
  /** The values by kind and key. In each kind, the value that expires first comes first. */
  readonly #kept = new Map<PendingKind, Map<string, Kept>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const kept = this.#kept.get(kind) ?? new Map<string, Kept>();
    this.#kept.set(kind, kept);
    const now = this.#clock.now();
    for (const [oldest, { untilMs }] of kept) {
      if (untilMs > now && kept.size < capacity) break;
      kept.delete(oldest);
    }
    kept.set(key, { value, untilMs: now + lifeMs });
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const kept = this.#kept.get(kind);
    const found = kept?.get(key);
    kept?.delete(key);
    return found && found.untilMs > this.#clock.now() ? found.value : undefined;
  }
}
