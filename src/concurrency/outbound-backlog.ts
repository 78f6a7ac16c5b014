import { HeldBytes } from './held-bytes.ts';

/** Bytes of responses that clients have not read yet. */

interface Waiter {
  userId: number;
  resume: (hasRoom: boolean) => void;
  timer: NodeJS.Timeout;
}

/**
 * An export reads its next page only below this share of its user's limit. So an unread export leaves room for the
 * user's other requests.
 */
const EXPORT_SHARE = 0.5;

/** Counts the unread bytes, and makes exports wait for room. */
export class OutboundBacklog extends HeldBytes {
  readonly #waiters = new Set<Waiter>();

  /** Whether an export of the user may read its next page. */
  hasRoomForExport(userId: number): boolean {
    const { processBytes, userBytes } = this.limits;
    return this.total < processBytes && this.of(userId) < userBytes * EXPORT_SHARE;
  }

  /** Resolves with true once an export of the user may read its next page, or with false after `waitMs`. */
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

  protected override onReleased(): void {
    for (const waiter of this.#waiters) if (this.hasRoomForExport(waiter.userId)) waiter.resume(true);
  }
}
