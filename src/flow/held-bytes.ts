/** Counts the bytes that a process holds for its users. The bytes are limited for each user and in total. */

/** Limits in bytes. */
interface ByteLimits {
  /** The limit of all users together. */
  processBytes: number;
  /** The limit of one user. */
  userBytes: number;
}

/** Which limit is reached. `account` means the limit of the user. */
type ByteRefusal = 'account' | 'process';

/**
 * Counts the bytes held for each user. A caller asks `refusal` before it reads more bytes. It calls `hold` only after
 * the read, when the number of bytes is known. So one read may exceed a limit.
 */
export class HeldBytes {
  protected readonly limits: ByteLimits;
  readonly #bytesByUser = new Map<number, number>();
  #total = 0;

  constructor(limits: ByteLimits) {
    this.limits = limits;
  }

  /** The bytes held now for all users. */
  get total(): number {
    return this.#total;
  }

  /** Returns the bytes held now for one user. */
  of(userId: number): number {
    return this.#bytesByUser.get(userId) ?? 0;
  }

  /** Returns which limit is reached; undefined if there is room. Without a user, only the process's limit counts. */
  refusal(userId: number | undefined): ByteRefusal | undefined {
    if (this.#total >= this.limits.processBytes) return 'process';
    if (userId !== undefined && this.of(userId) >= this.limits.userBytes) return 'account';
    return undefined;
  }

  /** Counts bytes as held until the returned function is called. Further calls of that function do nothing. */
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

  /** Called after bytes were released. Does nothing here, but a subclass may override it. */
  protected onReleased(): void {}

  #add(userId: number, bytes: number): void {
    this.#total += bytes;
    const held = this.of(userId) + bytes;
    if (held > 0) this.#bytesByUser.set(userId, held);
    else this.#bytesByUser.delete(userId);
  }
}

interface Waiter {
  userId: number;
  resume: (hasRoom: boolean) => void;
  timer: NodeJS.Timeout;
}

/**
 * A streamed response, such as an export, reads its next page only while its user's unread bytes are below this share
 * of the user's limit. So a stream that nobody reads leaves room for the user's other requests.
 */
const STREAM_SHARE = 0.5;

/** Counts the bytes of responses that clients have not read yet. Streamed responses wait here for room for a page. */
export class OutboundBacklog extends HeldBytes {
  readonly #waiters = new Set<Waiter>();

  /** Whether a stream of the user may read its next page. */
  hasRoomForPage(userId: number): boolean {
    const { processBytes, userBytes } = this.limits;
    return this.total < processBytes && this.of(userId) < userBytes * STREAM_SHARE;
  }

  /** Resolves with true when a stream of the user may read its next page, or with false after `waitMs`. */
  waitForPageRoom(userId: number, waitMs: number): Promise<boolean> {
    if (this.hasRoomForPage(userId)) return Promise.resolve(true);
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

  protected override onReleased(): void {
    for (const waiter of this.#waiters) if (this.hasRoomForPage(waiter.userId)) waiter.resume(true);
  }
}
