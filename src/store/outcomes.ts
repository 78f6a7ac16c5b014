import {
  type ApiError,
  accountSuspended,
  conflict,
  invalid,
  invalidToken,
  limitExceeded,
  notFound,
  permissionDenied,
  rateLimited,
  unavailable,
} from '../domain/errors.ts';
import { BOUNDS } from '../domain/fields.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Sql } from './driver/database.ts';

/**
 * The error for each outcome that a function in `sql/` may return in place of a success. Some errors contain the column
 * `detail` of the function's result.
 */
const ERROR_BY_OUTCOME = {
  token: invalidToken,
  suspended: accountSuspended,
  bookmark_missing: () => notFound('the bookmark'),
  bookmark_changed: () => conflict('the bookmark was changed since if_updated_at'),
  bookmark_exists: () => invalid('url: another bookmark has this url'),
  bookmark_limit: () => limitExceeded('the free tier holds no more bookmarks'),
  bookmark_tag_limit: () =>
    invalid(`add_tags: a bookmark would have more than ${BOUNDS.tagsPerBookmark} tags`),
  trash_changed: () => unavailable('the trash has changed meanwhile'),
  tag_missing: () => notFound('the tag'),
  tag_exists: () => invalid('name: another tag has this name'),
  child_exists: (name) => invalid(`name: the tag ${JSON.stringify(name)} exists already`),
  child_name_too_long: (name) =>
    invalid(`name: the tag ${JSON.stringify(name)} would have more than ${BOUNDS.tagName} characters`),
  tag_limit: () => limitExceeded('an account holds no more tags'),
  api_token_missing: () => notFound('the token'),
  passkey_missing: () => notFound('the passkey'),
  passkey_exists: () => conflict('the account has this passkey already'),
  passkey_limit: () => limitExceeded('an account holds no more passkeys'),
  passkey_last: () => conflict('this is the last way in: add another passkey first'),
  session_missing: () => notFound('the session'),
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
  import_unread: () => rateLimited(5, 'responses to earlier imports of this account have not been read'),
  responses_full: () =>
    rateLimited(60, 'too many responses are kept for the Idempotency-Keys of this account'),
  response_too_long: () =>
    invalid('Idempotency-Key: the errors are too many to be kept, send the import without a key'),
} satisfies Record<string, (detail: string) => ApiError>;

/** An outcome that a function in `sql/` returns in place of a success. */
export type Outcome = keyof typeof ERROR_BY_OUTCOME;

/** All outcomes other than success. */
export const OUTCOMES: readonly string[] = Object.keys(ERROR_BY_OUTCOME);

/**
 * Builds the arguments that pass the idempotency key of a request to a function. Without a key, no response is kept.
 */
export const keyArguments = (sql: Sql, idempotency: Idempotency | undefined) => sql`
  p_idempotency_key => ${idempotency?.key ?? null}, p_request_hash => ${idempotency?.requestHash ?? null}`;

/** The result of a function that writes: an outcome, or the response as JSON text. */
export interface Written {
  outcome: Outcome | null;
  response: string;
}

/** Returns the only row of an operation. If the row has an outcome, throws the error for that outcome. */
export function requireSuccess<Row extends { outcome: Outcome | null; detail?: string | null }>(
  rows: readonly Row[],
): Row {
  const row = onlyRow(rows);
  if (row.outcome === null) return row;
  throw errorOf(row.outcome, row.detail ?? '');
}

/** Returns the error for an outcome. Throws if a function in `sql/` returned an outcome that is not listed here. */
export function errorOf(outcome: string, detail = ''): ApiError {
  if (!Object.hasOwn(ERROR_BY_OUTCOME, outcome))
    throw new Error(`SQL returned the unknown outcome ${outcome}`);
  return ERROR_BY_OUTCOME[outcome as Outcome](detail);
}

/** Returns the only row of a statement that always returns one row. Throws if there is no row. */
export function onlyRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error('a statement returned no row');
  return row;
}

/** Returns the only row of a read. Throws `INVALID_TOKEN` if the token is no longer valid, or if there is no row. */
export function requireValidToken<Row extends { valid: boolean }>(rows: readonly Row[]): Row {
  const row = rows[0];
  if (row?.valid !== true) throw invalidToken();
  return row;
}
