/** Bytes that a process holds for its users: bounded per user and in all. */

/** Limits in bytes. */
interface ByteLimits {
  /** Of all users together. */
  processBytes: number;
  /** Of one user. */
  userBytes: number;
}

/** Whose bytes leave no room: those of the user's own account, or those of all users together. */
type ByteRefusal = 'account' | 'process';

/**
 * Counts what is held for each user. Whoever is about to hold more asks `refusal` first and calls `hold` once the size is
 * known, so a limit is passed by what is being read at that moment and no more.
 */
export class HeldBytes {
  protected readonly limits: ByteLimits;
  readonly #bytesByUser = new Map<number, number>();
  #total = 0;

  constructor(limits: ByteLimits) {
    this.limits = limits;
  }

  /** Bytes held now, of all users. */
  get total(): number {
    return this.#total;
  }

  /** Bytes held now of one user. */
  of(userId: number): number {
    return this.#bytesByUser.get(userId) ?? 0;
  }

  /** Why nothing further may be held for the user, or for a client without a token; undefined where it may be. */
  refusal(userId: number | undefined): ByteRefusal | undefined {
    if (this.#total >= this.limits.processBytes) return 'process';
    if (userId !== undefined && this.of(userId) >= this.limits.userBytes) return 'account';
    return undefined;
  }

  /** Counts bytes until the returned function is called; calls after the first do nothing. */
  hold(userId: number, bytes: number): () => void {
    this.#add(userId, bytes);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#add(userId, -bytes);
      this.onReleased();
    };
  }

  /** Called after bytes were released. */
  protected onReleased(): void {}

  #add(userId: number, bytes: number): void {
    this.#total += bytes;
    const now = this.of(userId) + bytes;
    if (now > 0) this.#bytesByUser.set(userId, now);
    else this.#bytesByUser.delete(userId);
  }
}
