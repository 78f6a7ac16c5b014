import { PENDING_KINDS, type PendingKind } from './pending-kinds.ts';
import type { Clock, PendingValues } from './port.ts';

interface Kept {
  value: string;
  /** When the value expires, by the clock of the class below. */
  untilMs: number;
}

/**
 * Pending values in the memory of the only replica. A restart forgets them, and people who were signing in start again.
 */
export class ProcessPendingValues implements PendingValues {
  readonly #clock: Clock;
  /** The values by kind and key. In each kind, the value that expires first comes first. */
  readonly #valuesByKind = new Map<PendingKind, Map<string, Kept>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const values = this.#valuesByKind.get(kind) ?? new Map<string, Kept>();
    this.#valuesByKind.set(kind, values);
    const now = this.#clock.now();
    // Deletes the expired values. If the kind is full, also deletes the oldest ones.
    for (const [oldestKey, { untilMs }] of values) {
      if (untilMs > now && values.size < capacity) break;
      values.delete(oldestKey);
    }
    values.set(key, { value, untilMs: now + lifeMs });
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const values = this.#valuesByKind.get(kind);
    const found = values?.get(key);
    values?.delete(key);
    return found && found.untilMs > this.#clock.now() ? found.value : undefined;
  }
}
