import { unavailable } from '../domain/errors.ts';

/** So many operations of one user at a time: the others of a user who sends many, or slow ones, wait for their turn. */

/** Told to come back: nothing of the operation has run. */
const refuse = () => unavailable('too many requests of this account are under way', 1);

/**
 * Keeps one user from taking every connection of the pool: searches of the dearest kind take seconds each, and whoever
 * writes during an import of their own waits for it while they hold a connection.
 */
export class Turns {
  readonly #limit: number;
  readonly #waitMs: number;
  readonly #taken = new Map<number, number>();
  readonly #lines = new Map<number, Set<() => void>>();

  /** At most `limit` at a time; who waits longer than `waitMs` is refused. */
  constructor(limit: number, waitMs: number) {
    this.#limit = limit;
    this.#waitMs = waitMs;
  }

  /** Does the work when it is its turn; throws `UNAVAILABLE` where that does not come in time. */
  async run<T>(userId: number, work: () => Promise<T>): Promise<T> {
    const taken = this.#taken.get(userId) ?? 0;
    if (taken < this.#limit) this.#taken.set(userId, taken + 1);
    else await this.#wait(userId);
    try {
      return await work();
    } finally {
      this.#pass(userId);
    }
  }

  #wait(userId: number): Promise<void> {
    const line = this.#lines.get(userId) ?? new Set();
    this.#lines.set(userId, line);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        line.delete(enter);
        reject(refuse());
      }, this.#waitMs);
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      line.add(enter);
    });
  }

  /** Gives the turn to the one who waits longest, or back. */
  #pass(userId: number): void {
    const line = this.#lines.get(userId);
    const [next] = line ?? [];
    if (next !== undefined) {
      line!.delete(next);
      next();
      return;
    }
    this.#lines.delete(userId);
    const left = this.#taken.get(userId)! - 1;
    if (left > 0) this.#taken.set(userId, left);
    else this.#taken.delete(userId);
  }
}
