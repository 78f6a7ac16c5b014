/** Bytes of responses that a process holds because their clients have not taken them yet: bounded per user and in all. */

/** Limits in bytes. */
export interface UnsentLimits {
  /** Of all users together. */
  processBytes: number;
  /** Of one user. */
  userBytes: number;
}

/** Whose bytes leave no room: those of the user's own account, or those of all users together. */
export type UnsentRefusal = 'account' | 'process';

interface Waiter {
  userId: number;
  resume: (hasRoom: boolean) => void;
  timer: NodeJS.Timeout;
}

/** An export reads on below this share of its user's limit: exports that nobody reads leave the rest to other requests. */
const EXPORT_SHARE = 0.5;

/**
 * Counts what is held for each user. Whoever is about to hold more asks `refusal` first and calls `hold` once the size is
 * known, so a limit is passed by what is being read at that moment and no more.
 */
export class UnsentBytes {
  readonly #limits: UnsentLimits;
  readonly #bytesByUser = new Map<number, number>();
  readonly #waiters = new Set<Waiter>();
  #total = 0;

  constructor(limits: UnsentLimits) {
    this.#limits = limits;
  }

  /** Bytes held now, of all users. */
  get total(): number {
    return this.#total;
  }

  /** Bytes held now of one user. */
  of(userId: number): number {
    return this.#bytesByUser.get(userId) ?? 0;
  }

  /** Why a request of the user, or of a client without a token, must not be begun; undefined where it may be. */
  refusal(userId: number | undefined): UnsentRefusal | undefined {
    if (this.#total >= this.#limits.processBytes) return 'process';
    if (userId !== undefined && this.of(userId) >= this.#limits.userBytes) return 'account';
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
      this.#resumeWaiters();
    };
  }

  /** Whether an export of the user may read its next page. */
  hasRoomForExport(userId: number): boolean {
    const { processBytes, userBytes } = this.#limits;
    return this.#total < processBytes && this.of(userId) < userBytes * EXPORT_SHARE;
  }

  /** Resolves with true once an export of the user may read its next page, with false after `waitMs` without. */
  waitForExportRoom(userId: number, waitMs: number): Promise<boolean> {
    if (this.hasRoomForExport(userId)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const resume = (hasRoom: boolean) => {
        clearTimeout(waiter.timer);
        this.#waiters.delete(waiter);
        resolve(hasRoom);
      };
      const waiter: Waiter = { userId, resume, timer: setTimeout(() => resume(false), waitMs) };
      this.#waiters.add(waiter);
    });
  }

  #add(userId: number, bytes: number): void {
    this.#total += bytes;
    const now = this.of(userId) + bytes;
    if (now > 0) this.#bytesByUser.set(userId, now);
    else this.#bytesByUser.delete(userId);
  }

  #resumeWaiters(): void {
    for (const waiter of this.#waiters) if (this.hasRoomForExport(waiter.userId)) waiter.resume(true);
  }
}
