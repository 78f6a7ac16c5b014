import { PENDING_KINDS, type PendingKind } from '../pending-kinds.ts';
import type { Clock, PendingValues } from '../port.ts';

interface PendingValue {
  value: string;
  /** When the value expires, by the clock of `ProcessPendingValues`. */
  untilMs: number;
}

/**
 * Pending values in the memory of the only replica. After a restart, people who were signing in must start again.
 */
export class ProcessPendingValues implements PendingValues {
  readonly #clock: Clock;
  /** The values by kind and key. In each kind, the value that expires first comes first. */
  readonly #valuesByKind = new Map<PendingKind, Map<string, PendingValue>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const values = this.#valuesByKind.get(kind) ?? new Map<string, PendingValue>();
    this.#valuesByKind.set(kind, values);
    const now = this.#clock.now();
    // Deletes the expired values. If the kind is full, also deletes the oldest values.
    for (const [oldestKey, { untilMs }] of values) {
      if (untilMs > now && values.size < capacity) break;
      values.delete(oldestKey);
    }
    values.set(key, { value, untilMs: now + lifeMs });
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const values = this.#valuesByKind.get(kind);
    const pending = values?.get(key);
    values?.delete(key);
    return pending && pending.untilMs > this.#clock.now() ? pending.value : undefined;
  }

  async takeIfEqual(kind: PendingKind, key: string, value: string): Promise<boolean> {
    if (this.#valuesByKind.get(kind)?.get(key)?.value !== value) return false;
    return (await this.take(kind, key)) !== undefined;
  }
}
