import { ApiError } from '../domain/errors.ts';
import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import {
  type AddedBookmark,
  type BookmarkChange,
  type OnDuplicate,
  sortTags,
  storedBookmark,
  storedChange,
} from './bookmarks.ts';
import type { Database } from './driver/database.ts';
import { BatchRefused } from './driver/errors.ts';
import { errorOf, type Outcome, requireSuccess } from './outcomes.ts';
import type { PrincipalKey } from './tokens.ts';

/** One write of a batch. Each has the fields of the request that does the same alone. */
export type BatchWrite = { idempotency?: Idempotency | undefined } & (
  | ({ do: 'add'; on_duplicate: OnDuplicate } & AddedBookmark)
  | ({ do: 'edit'; id: number; if_updated_at?: string | undefined } & BookmarkChange)
  | { do: 'delete'; id: number; if_updated_at?: string | undefined; trash: boolean }
);

/** What a write of a batch did. */
export interface Written {
  /** The response of the write's endpoint, as JSON text. */
  response: string;
  /** True if an add has added nothing, and its response is a bookmark that existed already. */
  existed: boolean;
}

interface BatchOptions {
  /** Whether all writes happen or none. */
  isAtomic: boolean;
  freeBookmarkLimit: number;
  /** The limit of the trash (`trashLimitOf`). If it is null, deletions are permanent. */
  trashLimit: number | null;
}

/**
 * Runs writes in order, in one statement. Returns the result of each, or the error for which it was refused. With
 * `isAtomic`, throws the first of these errors, and nothing has changed.
 */
export async function writeBatch(
  db: Database,
  principal: PrincipalKey,
  writes: readonly BatchWrite[],
  { isAtomic, freeBookmarkLimit, trashLimit }: BatchOptions,
): Promise<(Written | ApiError)[]> {
  const operations = JSON.stringify(writes.map(operationOf));
  type Row = { outcome: Outcome | null; outcomes: string[]; responses: string[]; existed: boolean[] };
  const written = db.at(principal.userId).write(
    (sql) => sql<Row[]>`
      select outcome, outcomes, responses, existed
      from write_batch(
        p_user_id => ${principal.userId}, p_token_hash => ${principal.hash},
        p_operations => ${operations}::text::jsonb, p_is_atomic => ${isAtomic},
        p_free_limit => ${freeBookmarkLimit}, p_tag_limit => ${BOUNDS.tagsPerUser},
        p_trash_limit => ${trashLimit}::bigint
      )`,
  );
  const rows = await written.catch((error) => {
    throw error instanceof BatchRefused ? atPlace(error.place, errorOf(error.outcome)) : error;
  });
  const { outcomes, responses, existed } = requireSuccess(rows);
  return outcomes.map((outcome, place) =>
    outcome === '' ? { response: responses[place]!, existed: existed[place]! } : errorOf(outcome),
  );
}

/** Returns the error of an operation as the error of its whole batch. The message names the operation. */
export const atPlace = (place: number, { code, message, retryAfterSeconds }: ApiError): ApiError =>
  new ApiError(code, `operations[${place}]: ${message}`, retryAfterSeconds);

/** Returns the arguments of a write's SQL function. */
function operationOf({ idempotency, ...write }: BatchWrite): object {
  const keyed = { key: idempotency?.key, hash: idempotency?.requestHash.toString('hex') };
  if (write.do === 'delete') return { ...keyed, ...write };
  if (write.do === 'add') {
    const { do: kind, on_duplicate, tags: unsortedTags, ...fields } = write;
    const tags = sortTags(unsortedTags);
    return {
      ...keyed,
      do: kind,
      on_duplicate,
      bookmark: storedBookmark(fields),
      tag_names: tags.names,
      tag_keys: tags.keys,
    };
  }
  const { do: kind, id, if_updated_at, tags, ...fields } = write;
  return {
    ...keyed,
    do: kind,
    id,
    if_updated_at,
    change: storedChange(fields),
    tag_names: tags?.names,
    tag_keys: tags?.keys,
  };
}
