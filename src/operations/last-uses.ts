import type { Database } from '../store/database.ts';
import { noteUses, type PrincipalKey } from '../store/tokens.ts';

/** Tokens per statement. */
const BATCH = 1_000;

/**
 * Collects the tokens whose last use must be stored. A request only adds its token and does not wait. If the process or
 * Postgres fails before the use is stored, the next lookup of the token finds it due again.
 */
export class LastUses {
  readonly #due = new Map<string, PrincipalKey>();
  readonly #capacity: number;

  constructor({ capacity = 20_000 } = {}) {
    this.#capacity = capacity;
  }

  /** Adds a token, unless it has been added already or too many are waiting. */
  add({ key, userId, hash }: PrincipalKey & { key: string }): void {
    if (this.#due.size < this.#capacity) this.#due.set(key, { userId, hash });
  }

  /** Writes the collected uses in batches. If Postgres fails, rejects and drops the rest. */
  async write(database: Database, sessionDays: number): Promise<void> {
    const owners = [...this.#due.values()];
    this.#due.clear();
    for (let from = 0; from < owners.length; from += BATCH)
      await noteUses(database, owners.slice(from, from + BATCH), sessionDays);
  }
}
