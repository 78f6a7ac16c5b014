import type { Bookmark, Deleted, EditedBookmark } from '../domain/resources.ts';
import { ApiError } from './errors.ts';
import { type ConflictPolicy, planWrite } from './merge.ts';
import type { Attempt, BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';
import { KEY_LIFE_MS, type Requester, type RequestOptions, randomId } from './requester.ts';

/**
 * Sends the writes of an outbox, in order. Each write goes through these steps. A crash after any step loses nothing.
 *
 * 1. begin: merge the write with the service's bookmark, and store the request and its key (`attempt`)
 * 2. send: send the same request under the same key until it is answered
 * 3. finish: in one transaction, store the bookmark from the response, remove the write, and add reports
 *
 * After `CONFLICT` or `NOT_FOUND`, the bookmark is read again, and the write returns to step 1.
 */

/** The arguments that every step needs. */
export interface Pushing {
  requester: Requester;
  store: CollectionStore;
  policy: ConflictPolicy;
  options: RequestOptions;
}

/** Codes of refusals that are final: a repeat gets the same response. */
const REFUSALS: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'LIMIT_EXCEEDED']);

/**
 * Finishes the write whose request may have reached the service, if there is such a write. A store refuses to apply
 * pages of changes until this write is finished.
 */
export async function finishAttempt(pushing: Pushing): Promise<void> {
  const { requester, store, options } = pushing;
  const write = await store.readNext();
  if (write?.attempt === undefined) return;
  // The service accepts the cursor only from the account that received it. So if the token belongs to another account,
  // this request fails, and that account does not receive the write.
  await requester.request('/bookmarks/changes', { cursor: await store.readCursor(), limit: 1 }, options);
  await send(pushing, write, write.attempt);
}

/**
 * Sends all writes. Rejects if the service cannot be reached or refuses the token. In that case, the remaining writes
 * stay in the outbox.
 */
export async function pushWrites(pushing: Pushing): Promise<void> {
  for (;;) {
    const write = await pushing.store.readNext();
    if (write === undefined) return;
    const attempt = write.attempt ?? (await begin(pushing, write));
    if (attempt !== undefined) await send(pushing, write, attempt);
  }
}

/**
 * Stores the request for a write and returns the request. If there is nothing to send, it removes the write and returns
 * undefined. It also returns undefined if another process has stored the request or finished the write in the
 * meantime.
 */
async function begin({ store, policy }: Pushing, { id, seq }: PendingWrite): Promise<Attempt | undefined> {
  let attempt: Attempt | undefined;
  await store.update(id, (state) => {
    const [write] = state.writes;
    const isTakenByAnother = write?.seq !== seq || write.attempt !== undefined;
    if (isTakenByAnother) return {};
    const plan = planWrite(write, state.row, policy);
    if (plan.kind === 'gone' || plan.kind === 'kept') return drop(state, [toReport(write, plan.kind)]);
    if (plan.kind === 'done') return drop(state, reportConflicts(write, plan.conflicts));
    const { body, version, conflicts } = plan;
    attempt = { key: randomId(), body, version, conflicts, startedMs: Date.now() };
    return { writes: [{ ...write, attempt }, ...state.writes.slice(1)] };
  });
  return attempt;
}

/** Sends a stored request and handles the response. Throws unless the response decides what happens to the write. */
async function send(pushing: Pushing, write: PendingWrite, attempt: Attempt): Promise<void> {
  try {
    const response = await request(pushing, write, attempt);
    await finish(pushing, write, attempt, (state, first) =>
      'deleted' in response ? { ...drop(state, []), row: null } : succeed(state, first, attempt, response),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 'CONFLICT' || error.code === 'NOT_FOUND') await refresh(pushing, write, attempt);
    else if (REFUSALS.has(error.code)) await refuse(pushing, write, attempt, error);
    else throw error;
  }
}

/** Changes the bookmark of a write, unless another process has already finished the attempt. */
const finish = (
  { store }: Pushing,
  { id }: PendingWrite,
  { key }: Attempt,
  work: (state: BookmarkState, first: PendingWrite) => StateChange,
): Promise<BookmarkState> =>
  store.update(id, (state) => {
    const [first] = state.writes;
    return first?.attempt?.key === key ? work(state, first) : {};
  });

async function request(
  { requester, options }: Pushing,
  { intent }: PendingWrite,
  { key, body, startedMs }: Attempt,
): Promise<Bookmark | EditedBookmark | Deleted> {
  const keyedOptions = { ...options, idempotencyKey: key };
  if ('id' in body) {
    return intent.kind === 'delete'
      ? requester.request('/bookmarks/delete', body, keyedOptions)
      : requester.request('/bookmarks/edit', body, keyedOptions);
  }
  // With an expired key, a repeated add could create a second bookmark. So this function first looks for the bookmark
  // that an earlier attempt may have added.
  if (intent.kind === 'add' && !isFresh(startedMs)) {
    const { bookmarks } = await requester.request('/bookmarks/get', { url: body.url }, options);
    const added = bookmarks.find((bookmark) => isFromAdd(intent, bookmark));
    if (added !== undefined) return added;
  }
  return requester.request('/bookmarks/add', body, keyedOptions);
}

/**
 * Returns whether the service still knows the key of a request that was made at `startedMs`. Returns false if that is
 * uncertain, for example because the clock has been set back.
 */
function isFresh(startedMs: number): boolean {
  const ageMs = Date.now() - startedMs;
  return ageMs >= 0 && ageMs < KEY_LIFE_MS;
}

/**
 * Returns what to store after a successful response. If this write replaced the version that the user saw, later
 * pending writes to the old version become writes to the new version.
 */
function succeed(
  state: BookmarkState,
  write: PendingWrite,
  { version, conflicts }: Attempt,
  response: Bookmark | EditedBookmark,
): StateChange {
  const reports = reportConflicts(write, conflicts);
  const { intent, seen } = write;
  // The response to an edit lacks `created_at`.
  const isWhole = 'created_at' in response;
  const isDuplicate = intent.kind === 'add' && isWhole && !isFromAdd(intent, response);
  if (isDuplicate) reports.push(toReport(write, 'duplicate'));
  // The `updated_at` that this write has created. For an add, it equals `created_at`. The `updated_at` in the response
  // may be later: if the bookmark was found by its url, somebody may have edited the bookmark after the add.
  const newVersion = isWhole ? response.created_at : response.updated_at;
  const sawReplacedVersion = version === seen && !isDuplicate;
  const writes = state.writes
    .slice(1)
    .map((later) => (sawReplacedVersion && later.seen === seen ? { ...later, seen: newVersion } : later));
  const row = isWhole ? response : state.row && { ...state.row, ...response };
  return { writes, reports, ...(row !== undefined && { row }) };
}

/** Returns whether this add created the bookmark. If so, the bookmark has the `created_at` that the add sent. */
const isFromAdd = (
  { bookmark }: Extract<PendingWrite['intent'], { kind: 'add' }>,
  { created_at }: Bookmark,
): boolean => Date.parse(bookmark.created_at) === Date.parse(created_at);

/** Reads the bookmark from the service and drops the stored request, so that `begin` plans the write again. */
async function refresh(pushing: Pushing, write: PendingWrite, attempt: Attempt): Promise<void> {
  const { requester, options } = pushing;
  const { bookmarks } = await requester.request('/bookmarks/get', { id: write.id }, options);
  await finish(pushing, write, attempt, ({ writes: [, ...rest] }, first) => ({
    writes: [{ ...first, attempt: undefined }, ...rest],
    row: bookmarks[0] ?? null,
  }));
}

/** Removes a refused write. Also removes the later writes to the same bookmark if the refused write was an add. */
async function refuse(
  pushing: Pushing,
  write: PendingWrite,
  attempt: Attempt,
  { code, message }: ApiError,
): Promise<void> {
  await finish(pushing, write, attempt, ({ id, writes }) => {
    // Only a bookmark that the service does not have yet has a negative id. The first write to it is the add.
    const isAdd = id < 0;
    const refused = isAdd ? writes : writes.slice(0, 1);
    const reports = refused.map(
      ({ seq, intent }): Report => ({ seq, id, intent, kind: 'refused', code, message }),
    );
    return { writes: writes.slice(refused.length), reports };
  });
}

/** Removes the first write and stores the reports. */
const drop = ({ writes }: BookmarkState, reports: Report[]): StateChange => ({
  writes: writes.slice(1),
  reports,
});

const toReport = ({ seq, id, intent }: PendingWrite, kind: 'kept' | 'gone' | 'duplicate'): Report => ({
  seq,
  id,
  intent,
  kind,
});

const reportConflicts = ({ seq, id, intent }: PendingWrite, conflicts: Attempt['conflicts']): Report[] =>
  conflicts.map((conflict) => ({ seq, id, intent, kind: 'conflict', conflict }));
