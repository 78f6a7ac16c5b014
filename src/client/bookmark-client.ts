import { EndpointClient } from './client.ts';
import { Collection, type CollectionOptions } from './collection.ts';
import { type FollowOptions, followBookmarks, type SyncBatch } from './follow.ts';
import { type MirrorBatch, type MirrorOptions, mirrorBookmarks } from './mirror.ts';
import type { CollectionStore } from './outbox.ts';
import type { CopyFault } from './repair.ts';
import type { RequestOptions } from './requester.ts';
import { verifyCopy } from './verify.ts';

/** A local copy that follows the service. An iteration applies the changes to the store, and yields them. */
export interface Mirror extends AsyncIterable<MirrorBatch> {
  /**
   * Compares the copy with the service, repairs it, and resolves with what was wrong. A right copy of an ordinary account
   * costs one request, also while other clients write. The comparison covers the ids, `updated_at` and tags of all
   * bookmarks, and the names of all tags. It leaves the store's cursor where it is, so you may call it while an
   * iteration runs.
   *
   * Rejects with `MirrorConflict` if the copy has not been filled, or if a write to the store is in progress. Rejects
   * with a `TypeError` in a browser on a page without TLS.
   */
  verify(options?: RequestOptions): Promise<CopyFault[]>;
}

/**
 * The client of the Bookmark Service: one method per endpoint, plus `sync`, `listAll`, `searchAll`, `mirror` and
 * `collection`. It stays within the token's rate limit. It retries failed requests that are safe to repeat: reads,
 * writes with an `Idempotency-Key`, and requests that the service has certainly not processed. Before a retry, it waits
 * at least as long as the service asks. A call that fails rejects with an `ApiError`, unless it was aborted.
 */
export class BookmarkClient extends EndpointClient {
  /** Returns a client with the same options for another token. The new client has its own quota. */
  withToken(token: string): BookmarkClient {
    return new BookmarkClient({ ...this.options, token });
  }

  /**
   * Yields every bookmark after a cursor exactly once, in batches and in order of ids. Then it waits for new bookmarks
   * and yields these too, unless `follow` is false. It retries after lost connections and temporary errors for as long
   * as they last. It throws if the service refuses the request, for example because the token was revoked. Store the
   * cursor of each batch together with its bookmarks.
   */
  sync(options?: FollowOptions): AsyncGenerator<SyncBatch, void, undefined> {
    return followBookmarks(this.requester, options);
  }

  /**
   * Keeps a local copy equal to the account's bookmarks and tags, including edits and deletions. It continues from the
   * store's cursor, applies each page of changes to the store, and then yields the page. It retries after lost
   * connections and temporary errors for as long as they last. It throws if the service refuses the request, for
   * example because the token was revoked.
   */
  mirror(options: MirrorOptions): Mirror {
    const { store, signal } = options;
    return {
      [Symbol.asyncIterator]: () => mirrorBookmarks(this.requester, options),
      verify: (requestOptions) => verifyCopy(this.requester, store, { signal, ...requestOptions }),
    };
  }

  /**
   * Opens a local copy that you can read and write without a connection. Its method `sync` sends the writes and reads
   * the changes of other clients. A store belongs to one account: use another store for another account.
   */
  collection(store: CollectionStore, options?: CollectionOptions): Collection {
    return new Collection(this.requester, store, options);
  }
}
