import type { Database } from '../store/database.ts';
import { noteUses, type PrincipalKey } from '../store/tokens.ts';

/** Tokens of one statement. */
const BATCH = 1_000;

/**
 * The tokens whose use is to be noted. A request only adds its token, and waits for nothing; what is lost with the process,
 * or because Postgres was away, the next look-up of the token finds due again.
 */
export class LastUses {
  readonly #due = new Map<string, PrincipalKey>();
  readonly #capacity: number;

  constructor({ capacity = 20_000 } = {}) {
    this.#capacity = capacity;
  }

  /** Notes a use, once for a token however often it is called; nothing where too many wait already. */
  add({ key, userId, hash }: PrincipalKey & { key: string }): void {
    if (this.#due.size < this.#capacity) this.#due.set(key, { userId, hash });
  }

  /** Writes what is due, batch by batch; rejects with the rest dropped where Postgres does not take it. */
  async write(database: Database, sessionDays: number): Promise<void> {
    const owners = [...this.#due.values()];
    this.#due.clear();
    for (let from = 0; from < owners.length; from += BATCH)
      await noteUses(database, owners.slice(from, from + BATCH), sessionDays);
  }
}
