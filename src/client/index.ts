/** `bookmark-service/client`: the client of the Bookmark Service, for Node and browsers. */

export type * from '../domain/resources.ts';
export { BookmarkClient, type Mirror } from './bookmark-client.ts';
export {
  Collection,
  type CollectionFollowOptions,
  type CollectionOptions,
  type LocalEdit,
  NotInCollection,
} from './collection.ts';
export type { BookmarkVersion, IdRange } from './digests.ts';
export { ApiError, type ApiErrorDetails, type ClientErrorCode } from './errors.ts';
export type { FollowOptions, SyncBatch } from './follow.ts';
export { IndexedDbStore } from './indexed-db-store.ts';
export { MemoryStore } from './memory-store.ts';
export type { ConflictPolicy } from './merge.ts';
export {
  type MirrorBatch,
  MirrorConflict,
  type MirrorOptions,
  type MirrorPage,
  type MirrorStore,
} from './mirror.ts';
export type {
  Attempt,
  BookmarkState,
  CollectionStore,
  FieldConflict,
  Intent,
  MergedField,
  MergedValue,
  PendingWrite,
  Report,
  StateChange,
} from './outbox.ts';
export type { CopyFault } from './repair.ts';
export type { ClientOptions, KeyedOptions, RequestOptions, RetryEvent } from './requester.ts';
export {
  formatTag,
  type ParsedSearch,
  parseSearch,
  type SearchFilter,
  type SearchProblem,
} from './search-text.ts';
export type { Clock } from './timing.ts';
export type { ChangedIds } from './watchers.ts';
