import { EndpointClient } from './client.ts';
import { Collection, type CollectionOptions } from './collection.ts';
import { type FollowOptions, followBookmarks, type SyncBatch } from './follow.ts';
import { type MirrorBatch, type MirrorOptions, mirrorBookmarks } from './mirror.ts';
import type { CollectionStore } from './outbox.ts';

/**
 * The client of the Bookmark Service: one method per endpoint, plus `sync`, `listAll`, `searchAll`, `mirror` and
 * `collection`. It stays within the token's rate limit and waits as long as the service asks. It retries failed
 * requests if that is safe: reads, and writes that carry an `Idempotency-Key`. Every failure is an `ApiError`, except
 * an abort.
 */
export class BookmarkClient extends EndpointClient {
  /** Returns a client with the same options for another token. The new client has its own quota. */
  withToken(token: string): BookmarkClient {
    return new BookmarkClient({ ...this.options, token });
  }

  /**
   * Yields every bookmark after a cursor once, in order of ids, and then each new one. It retries failures and never
   * ends by itself, unless the service refuses the token. Store the cursor of each batch together with its bookmarks.
   */
  sync(options?: FollowOptions): AsyncGenerator<SyncBatch, void, undefined> {
    return followBookmarks(this.requester, options);
  }

  /**
   * Keeps a local copy equal to the collection, including edits and deletions. It continues from the store's cursor,
   * applies each page to the store, and then yields it. While it follows, it retries failures and never ends by
   * itself, unless the service refuses the token.
   */
  mirror(options: MirrorOptions): AsyncGenerator<MirrorBatch, void, undefined> {
    return mirrorBookmarks(this.requester, options);
  }

  /**
   * Opens a local copy that you can read and write without a connection. Its `sync` sends the writes and reads
   * changes. A store belongs to one account: use another store for another account.
   */
  collection(store: CollectionStore, options?: CollectionOptions): Collection {
    return new Collection(this.requester, store, options);
  }
}
