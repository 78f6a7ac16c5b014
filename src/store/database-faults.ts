import type { DatabaseUnavailable, UnavailableReason } from './errors.ts';
import type { DatabaseLog } from './open-database.ts';

/** Faults of Postgres itself that a probe's read may not meet, such as a full disk, and that an operator has to mend. */
const NAMED_FAULTS = ['resources', 'disk-full', 'missing-code', 'failed'] as const;
type NamedFault = (typeof NAMED_FAULTS)[number];

export const isNamedFault = (state: string): state is NamedFault =>
  (NAMED_FAULTS as readonly string[]).includes(state);

/** A fault counts as current for so long after the last statement that met it. */
const CURRENT_MS = 15_000;

/** A fault that lasts is logged again after this time. */
const REPEAT_MS = 60_000;

/** Remembers the last such fault that a statement met, for `/readyz`, and logs each kind once a minute. */
export class DatabaseFaults {
  readonly #log: DatabaseLog;
  readonly #logged = new Map<UnavailableReason, number>();
  #last: { reason: NamedFault; at: number } | undefined;

  constructor(log: DatabaseLog) {
    this.#log = log;
  }

  /** The fault that a statement met lately; undefined where none did. */
  get current(): NamedFault | undefined {
    if (this.#last === undefined || performance.now() - this.#last.at > CURRENT_MS) return undefined;
    return this.#last.reason;
  }

  note({ reason, code, cause }: DatabaseUnavailable): void {
    if (!isNamedFault(reason)) return;
    const at = performance.now();
    this.#last = { reason, at };
    if (at - (this.#logged.get(reason) ?? -REPEAT_MS) < REPEAT_MS) return;
    this.#logged.set(reason, at);
    // Errors of these classes name files and limits, never values of rows.
    const says = cause instanceof Error ? cause.message : undefined;
    this.#log.warn({ reason, sqlState: code, says }, 'the database cannot serve requests');
  }
}
