import { EndpointClient } from './client.ts';
import { Collection, type CollectionOptions } from './collection.ts';
import { type FollowOptions, followBookmarks, type SyncBatch } from './follow.ts';
import { type MirrorBatch, type MirrorOptions, mirrorBookmarks } from './mirror.ts';
import type { CollectionStore } from './outbox.ts';
import { type LocalBookmark, type ReconcileOptions, type Reconciliation, reconcile } from './reconcile.ts';
import { systemClock, type Timing } from './timing.ts';

/**
 * The client of the Bookmark Service: a method for each endpoint, and `sync`, `listAll`, `mirror` and `reconcile`
 * above them. It keeps within the token's quota, waits as long as the service asks, and retries what failed where
 * that is safe: reads, and writes that carry an `Idempotency-Key`. Every failure is an `ApiError`,
 * except an abort.
 */
export class BookmarkClient extends EndpointClient {
  private get timing(): Timing {
    return { clock: this.options.clock ?? systemClock, random: this.options.random ?? Math.random };
  }

  /** The same client with another token, and a quota of its own. */
  withToken(token: string): BookmarkClient {
    return new BookmarkClient({ ...this.options, token });
  }

  /**
   * Every bookmark after a cursor, once, in the order of ids, and then each new one as it comes. It goes on without
   * end, whatever fails, until the token is not valid. Store the cursor of each batch together with its bookmarks.
   */
  sync(options?: FollowOptions): AsyncGenerator<SyncBatch, void, undefined> {
    return followBookmarks(this.requester, this.timing, options);
  }

  /**
   * Keeps a local copy equal to the collection, edits and deletions included. It goes on from the store's cursor,
   * applies each page to the store, and then yields it. While it follows it does not end, whatever fails, until the
   * token is not valid.
   */
  mirror(options: MirrorOptions): AsyncGenerator<MirrorBatch, void, undefined> {
    return mirrorBookmarks(this.requester, this.timing, options);
  }

  /**
   * A local copy that can be read and written to without a connection; its `sync` sends the writes and reads what
   * changed. One token at a time may use a store: another account's bookmarks need another store.
   */
  collection(store: CollectionStore, options?: CollectionOptions): Collection {
    return new Collection(this.requester, this.timing, store, options);
  }

  /**
   * Compares a local set of bookmarks with the service's: which are missing here, which differ in a field that is
   * held here, and which no longer exist there. Throws `TooManyGone` where those are more than half of the local set,
   * unless forced.
   */
  reconcile(
    local: Iterable<LocalBookmark> | AsyncIterable<LocalBookmark>,
    options?: ReconcileOptions,
  ): Promise<Reconciliation> {
    return reconcile(this.listAll(options), local, options);
  }
}
