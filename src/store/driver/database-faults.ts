import type { DatabaseUnavailable, UnavailableReason } from './errors.ts';
import type { DatabaseLog } from './open.ts';

/**
 * Faults of Postgres itself that an operator must fix, for example a full disk. The probe of the database (`probe.ts`)
 * can miss such a fault, because the probe only reads, and a read may still succeed.
 */
const NAMED_FAULTS = ['resources', 'disk-full', 'missing-code', 'failed'] as const;
type NamedFault = (typeof NAMED_FAULTS)[number];

export const isNamedFault = (state: string): state is NamedFault =>
  NAMED_FAULTS.some((fault) => fault === state);

/** A fault is current for this long after it last made a statement fail. */
const CURRENT_MS = 15_000;

/** A fault that continues is logged again after this time. */
const REPEAT_MS = 60_000;

/**
 * Remembers the latest fault of `NAMED_FAULTS` that made a statement fail, so that `/readyz` can name it. Logs each
 * fault at most once a minute.
 */
export class DatabaseFaults {
  readonly #log: DatabaseLog;
  /** By reason: when the fault was last logged, as `performance.now()`. */
  readonly #logged = new Map<UnavailableReason, number>();
  #last: { reason: NamedFault; at: number } | undefined;

  constructor(log: DatabaseLog) {
    this.#log = log;
  }

  /** The current fault; undefined if there is none. */
  get current(): NamedFault | undefined {
    if (this.#last === undefined || performance.now() - this.#last.at > CURRENT_MS) return undefined;
    return this.#last.reason;
  }

  /** Remembers and logs the error if its reason is a named fault. */
  note({ reason, code, cause }: DatabaseUnavailable): void {
    if (!isNamedFault(reason)) return;
    const now = performance.now();
    this.#last = { reason, at: now };
    const loggedAt = this.#logged.get(reason);
    if (loggedAt !== undefined && now - loggedAt < REPEAT_MS) return;
    this.#logged.set(reason, now);
    // The messages of these errors name files and limits, never values of rows.
    const says = cause instanceof Error ? cause.message : undefined;
    this.#log.warn({ reason, sqlState: code, says }, 'the database cannot serve requests');
  }
}
