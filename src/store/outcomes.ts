import {
  type ApiError,
  invalid,
  invalidToken,
  limitExceeded,
  notFound,
  permissionDenied,
  rateLimited,
  unavailable,
} from '../domain/errors.ts';
import { BOUNDS } from '../domain/fields.ts';

/** What the functions in `sql/` may return instead of a success. */
export type Outcome =
  | 'token'
  | 'bookmark_missing'
  | 'bookmark_exists'
  | 'bookmark_limit'
  | 'bookmark_tag_limit'
  | 'tag_missing'
  | 'tag_exists'
  | 'tag_limit'
  | 'invite_missing'
  | 'import_busy'
  | 'import_full'
  | 'import_over'
  | 'import_changed'
  | 'import_unread'
  | 'key_reused'
  | 'responses_full'
  | 'response_too_long'
  | 'session_old'
  | 'email_differs'
  | 'token_exists'
  | 'token_limit';

const ERROR_BY_OUTCOME: Record<Outcome, () => ApiError> = {
  token: invalidToken,
  bookmark_missing: () => notFound('the bookmark'),
  bookmark_exists: () => invalid('url: another bookmark has this url'),
  bookmark_limit: () => limitExceeded('the free tier holds no more bookmarks'),
  bookmark_tag_limit: () =>
    invalid(`add_tags: a bookmark would have more than ${BOUNDS.tagsPerBookmark} tags`),
  tag_missing: () => notFound('the tag'),
  tag_exists: () => invalid('name: another tag has this name'),
  tag_limit: () => limitExceeded('an account holds no more tags'),
  invite_missing: () => notFound('the invite'),
  import_busy: () => rateLimited(5, 'another large import of this account is under way'),
  import_full: () => unavailable('too many large imports are under way', 10),
  key_reused: () => invalid('Idempotency-Key: was used for another request'),
  session_old: () =>
    permissionDenied('log in again: this needs a person who logged in within the last 15 minutes'),
  email_differs: () => invalid('confirm: is not the e-mail address of this account'),
  token_exists: () => invalid('name: another API token has this name'),
  token_limit: () => limitExceeded('an account holds no more API tokens'),
  import_over: () => unavailable('the import was cancelled'),
  import_changed: () => unavailable('the bookmarks have changed meanwhile'),
  import_unread: () => rateLimited(5, 'responses to earlier imports of this account have not been read'),
  responses_full: () =>
    rateLimited(60, 'too many responses are kept for the Idempotency-Keys of this account'),
  response_too_long: () =>
    invalid('Idempotency-Key: the errors are too many to be kept, send the import without a key'),
};

/** The one row of an operation, or the error that its outcome stands for. */
export function requireSuccess<Row extends { outcome: Outcome | null }>(rows: readonly Row[]): Row {
  const row = rows[0]!;
  if (row.outcome !== null) throw ERROR_BY_OUTCOME[row.outcome]();
  return row;
}

/** The one row of a read, or `INVALID_TOKEN` where the token was no longer valid. */
export function requireValidToken<Row extends { valid: boolean }>(rows: readonly Row[]): Row {
  const row = rows[0];
  if (row?.valid !== true) throw invalidToken();
  return row;
}
