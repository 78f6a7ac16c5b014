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
  /** Oldest first within each kind, because all values of a kind have the same lifetime. */
  readonly #kept: Readonly<Record<PendingKind, Map<string, Kept>>> = {
    logins: new Map(),
    codes: new Map(),
    exchanges: new Map(),
    repeats: new Map(),
    deviceCodes: new Map(),
    deviceSessions: new Map(),
    passkeySignIns: new Map(),
    passkeyAdditions: new Map(),
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async keep(kind: PendingKind, key: string, value: string): Promise<void> {
    const { lifeMs, capacity } = PENDING_KINDS[kind];
    const kept = this.#kept[kind];
    const now = this.#clock.now();
    for (const [oldest, { untilMs }] of kept) {
      if (untilMs > now && kept.size < capacity) break;
      kept.delete(oldest);
    }
    kept.set(key, { value, untilMs: now + lifeMs });
  }

  async take(kind: PendingKind, key: string): Promise<string | undefined> {
    const found = this.#kept[kind].get(key);
    this.#kept[kind].delete(key);
    return found && found.untilMs > this.#clock.now() ? found.value : undefined;
  }
}
