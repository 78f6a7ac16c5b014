import type { Database } from './driver/database.ts';
import { noteUses, type PrincipalKey } from './tokens.ts';

/** The maximum number of tokens in a statement. */
const BATCH = 1_000;

/**
 * Collects the tokens whose last use must be stored. A request only adds its token, and does not wait for the statement
 * that stores the use. If the use is lost because the process or Postgres fails, the next lookup of the token adds the
 * token again.
 */
export class LastUses {
  /** The collected tokens, by their keys. */
  readonly #due = new Map<string, PrincipalKey>();
  readonly #capacity: number;

  constructor({ capacity = 20_000 } = {}) {
    this.#capacity = capacity;
  }

  /** Adds a token. Does nothing if it was added already, or if too many tokens have been collected. */
  add({ key, userId, hash }: PrincipalKey & { key: string }): void {
    if (this.#due.size < this.#capacity) this.#due.set(key, { userId, hash });
  }

  /**
   * Stores the collected uses in batches. If Postgres fails, the promise rejects, and the uses that are not stored yet
   * are forgotten.
   */
  async write(database: Database, sessionDays: number): Promise<void> {
    const tokens = [...this.#due.values()];
    this.#due.clear();
    for (let from = 0; from < tokens.length; from += BATCH)
      await noteUses(database, tokens.slice(from, from + BATCH), sessionDays);
  }
}
