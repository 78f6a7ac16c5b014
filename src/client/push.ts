import { BOUNDS } from '../domain/bounds.ts';
import type { BatchOperation, BatchResults, Bookmark, EditedBookmark, Refusal } from '../domain/resources.ts';
import { BatchRoom } from './batch-room.ts';
import { ApiError } from './errors.ts';
import { type ConflictPolicy, planWrite } from './merge.ts';
import type { Attempt, BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';
import { KEY_LIFE_MS, type Requester, type RequestOptions, randomId } from './requester.ts';

/**
 * Sends the writes of an outbox in batches. Each batch goes through these steps. A crash after any step loses nothing.
 *
 * 1. begin: choose writes, merge each with the service's bookmark, and store the operations and their keys (`attempt`)
 * 2. send: send the same operations under the same keys until they are answered
 * 3. finish: store the bookmarks from the response, remove the writes, and add reports
 *
 * A write that `CONFLICT` or `NOT_FOUND` refused returns to step 1 after the changes of other clients have been read.
 *
 * Steps 1 and 3 are one transaction of the store each. They keep a rule: if any write has an attempt, the first write in
 * the outbox has one. So a look at the first write shows whether the outcome of a batch is unknown.
 */

/** The arguments that every step needs. */
export interface Pushing {
  requester: Requester;
  store: CollectionStore;
  policy: ConflictPolicy;
  options: RequestOptions;
  /** Reads the changes of other clients and applies them to the store. */
  pull: () => Promise<void>;
}

/** A write whose operation is stored. */
type Begun = PendingWrite & { attempt: Attempt };

type Result = BatchResults['results'][number];

/** Codes of refusals that are final: a repeat gets the same response. */
const REFUSALS: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'LIMIT_EXCEEDED']);

/** Codes of refusals which say that the copy is out of date. */
const OUTDATED: ReadonlySet<string> = new Set(['CONFLICT', 'NOT_FOUND']);

/** How long a write waits if the service cannot keep its response, in seconds. As after a single request. */
const FULL_FOR_SECONDS = 60;

/** How many writes are looked at for a batch. Later writes to the same bookmark take no place in the batch. */
const MAX_CONSIDERED = 2 * BOUNDS.operationsPerBatch;

/**
 * Finishes the batch that may have reached the service, if there is one. A store refuses to apply pages of changes until
 * this batch is finished.
 */
export async function finishAttempts(pushing: Pushing): Promise<void> {
  const { requester, store, options } = pushing;
  const writes = await store.readOutbox(MAX_CONSIDERED);
  const begun = writes.filter((write): write is Begun => write.attempt !== undefined);
  if (begun.length === 0) return;
  // The service accepts the cursor only from the account that received it. So if the token belongs to another account,
  // this request fails, and that account does not receive the writes.
  await requester.request('/bookmarks/changes', { cursor: await store.readCursor(), limit: 1 }, options);
  await send(pushing, begun);
}

/**
 * Sends all writes. Rejects if the service cannot be reached, refuses the token, or has no room to keep the response to
 * a write. In that case, the remaining writes stay in the outbox.
 */
export async function pushWrites(pushing: Pushing): Promise<void> {
  for (;;) {
    const writes = await pushing.store.readOutbox(MAX_CONSIDERED);
    if (writes.length === 0) return;
    // Another process may have begun a batch since `finishAttempts`.
    if (writes[0]?.attempt !== undefined) await finishAttempts(pushing);
    else await send(pushing, await begin(pushing, chooseWrites(writes)));
  }
}

/**
 * Sends all writes. Returns undefined afterwards. If the service has no room to keep the responses to more writes, it
 * instead returns after how many seconds to try again.
 */
export async function pushUnlessFull(pushing: Pushing): Promise<number | undefined> {
  try {
    await finishAttempts(pushing);
    await pushWrites(pushing);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RATE_LIMITED') return error.retryAfterSeconds;
    throw error;
  }
}

/**
 * Returns the first write of each bookmark, in order. Later writes to the same bookmark need the version that the first
 * one creates. They may be overtaken, except by an add: a deletion makes room below the account's cap, and a deletion or
 * a new url decides whether an added url is a duplicate.
 */
function chooseWrites(outbox: readonly PendingWrite[]): PendingWrite[] {
  const chosen = new Map<number, PendingWrite>();
  let isAddBlocked = false;
  for (const write of outbox) {
    const { id, intent } = write;
    if (intent.kind === 'add' && isAddBlocked) break;
    if (!chosen.has(id)) chosen.set(id, write);
    else if (intent.kind === 'delete' || (intent.kind === 'edit' && intent.fields.url)) isAddBlocked = true;
  }
  return [...chosen.values()].slice(0, BOUNDS.operationsPerBatch);
}

/**
 * Stores the operations for the chosen writes, as many as fit into one batch, and returns these writes. Removes the
 * writes for which there is nothing to send. Returns none if another process has begun or finished a batch in the
 * meantime.
 */
async function begin({ store, policy }: Pushing, chosen: readonly PendingWrite[]): Promise<Begun[]> {
  const seqs = new Set(chosen.map(({ seq }) => seq));
  const room = new BatchRoom();
  const begun: Begun[] = [];
  let isOver = false;
  const plan = (state: BookmarkState): StateChange => {
    const [write, ...later] = state.writes;
    const isTakenByAnother = write === undefined || !seqs.has(write.seq) || write.attempt !== undefined;
    isOver ||= isTakenByAnother;
    if (isOver || write === undefined) return {};
    const plan = planWrite(write, state.row, policy);
    if (plan.kind !== 'send') {
      // Without an attempt before it, the next write of this bookmark may now be the first write in the outbox.
      isOver = begun.length === 0 && later.length > 0;
      if (plan.kind === 'done') return drop(state, reportConflicts(write, plan.conflicts));
      return drop(state, [toReport(write, plan.kind)]);
    }
    const { body, version, conflicts } = plan;
    const next = { ...write, attempt: { key: randomId(), body, version, conflicts, startedMs: Date.now() } };
    isOver = !room.take(toOperation(next));
    if (isOver) return {};
    begun.push(next);
    return { writes: [next, ...later] };
  };
  await store.update(
    chosen.map(({ id }) => id),
    plan,
  );
  return begun;
}

const toOperation = ({ intent, attempt: { key, body } }: Begun): BatchOperation =>
  ({ do: intent.kind, key, ...body }) as BatchOperation;

/** Sends a batch and handles the response. Throws unless the response decides what happens to the writes. */
async function send(pushing: Pushing, begun: readonly Begun[]): Promise<void> {
  if (begun.length === 0) return;
  const results = await request(pushing, begun);
  await finish(pushing, begun, results);
  const refusalOf = ({ attempt }: Begun): Refusal | undefined => {
    const result = results.get(attempt.key);
    return result !== undefined && 'code' in result ? result : undefined;
  };
  const outdated = begun.filter((write) => OUTDATED.has(refusalOf(write)?.code ?? ''));
  if (outdated.length > 0) await pushing.pull();
  for (const write of outdated) await refresh(pushing, write);
  const limited = begun.map(refusalOf).find((refusal) => refusal?.code === 'RATE_LIMITED');
  if (limited === undefined) return;
  const { error, code } = limited;
  throw new ApiError(error, { code, status: 429, retryAfterSeconds: FULL_FOR_SECONDS, requestId: '' });
}

/** Returns the result of each write, by key. */
async function request(pushing: Pushing, begun: readonly Begun[]): Promise<Map<string, Result>> {
  const { requester, options } = pushing;
  const results = new Map<string, Result>();
  for (const write of begun) {
    const added = await findAdded(pushing, write);
    if (added !== undefined) results.set(write.attempt.key, added);
  }
  const unanswered = begun.filter(({ attempt }) => !results.has(attempt.key));
  if (unanswered.length === 0) return results;
  const operations = unanswered.map(toOperation);
  const batch = await requester.request('/bookmarks/batch', { operations }, options).catch((error) => {
    // A write that is too large for a batch is alone in its batch. The service then refuses the batch as a whole.
    if (operations.length > 1 || !(error instanceof ApiError && REFUSALS.has(error.code))) throw error;
    return { results: [{ error: error.message, code: error.code } as Refusal] };
  });
  batch.results.forEach((result, place) => void results.set(unanswered[place]!.attempt.key, result));
  return results;
}

/**
 * Looks for the bookmark that an earlier attempt of an add may have added. Returns undefined while the service knows the
 * key of the add, because the add can then be sent again. With an expired key, that could create a second bookmark.
 */
async function findAdded(
  { requester, options }: Pushing,
  { intent, attempt: { startedMs } }: Begun,
): Promise<Bookmark | undefined> {
  if (intent.kind !== 'add' || isFresh(startedMs)) return undefined;
  const { url } = intent.bookmark;
  const { bookmarks } = await requester.request('/bookmarks/get', { url }, options);
  return bookmarks.find((bookmark) => isFromAdd(intent, bookmark));
}

/**
 * Returns whether the service still knows the key of a request that was made at `startedMs`. Returns false if that is
 * uncertain, for example because the clock has been set back.
 */
function isFresh(startedMs: number): boolean {
  const ageMs = Date.now() - startedMs;
  return ageMs >= 0 && ageMs < KEY_LIFE_MS;
}

/** Stores the results of a batch, except those that another process has already stored. */
async function finish(
  { store }: Pushing,
  begun: readonly Begun[],
  results: ReadonlyMap<string, Result>,
): Promise<void> {
  await store.update(
    begun.map(({ id }) => id),
    (state) => {
      const [write] = state.writes;
      const attempt = write?.attempt;
      const result = attempt && results.get(attempt.key);
      return result === undefined ? {} : settle(state, write!, attempt!, result);
    },
  );
}

/** Returns what to store after the response to a write. A write that was not decided stays, without its attempt. */
function settle(state: BookmarkState, write: PendingWrite, attempt: Attempt, result: Result): StateChange {
  if ('deleted' in result) return { ...drop(state, []), row: null };
  if (!('code' in result)) return succeed(state, write, attempt, result);
  if (REFUSALS.has(result.code)) return refuse(state, result);
  return { writes: [{ ...write, attempt: undefined }, ...state.writes.slice(1)] };
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

/**
 * Reads a bookmark from the service if the changes have not shown why its write was refused. That happens if the copy is
 * wrong about this bookmark.
 */
async function refresh(
  { requester, store, options }: Pushing,
  { id, attempt: { version } }: Begun,
): Promise<void> {
  if ((await store.read(id)).row?.updated_at !== version) return;
  const { bookmarks } = await requester.request('/bookmarks/get', { id }, options);
  await store.update([id], ({ row }) => (row?.updated_at === version ? { row: bookmarks[0] ?? null } : {}));
}

/** Removes a refused write. Also removes the later writes to the same bookmark if the refused write was an add. */
function refuse({ id, writes }: BookmarkState, { code, error: message }: Refusal): StateChange {
  // Only a bookmark that the service does not have yet has a negative id. The first write to it is the add.
  const isAdd = id < 0;
  const refused = isAdd ? writes : writes.slice(0, 1);
  const reports = refused.map(
    ({ seq, intent }): Report => ({ seq, id, intent, kind: 'refused', code, message }),
  );
  return { writes: writes.slice(refused.length), reports };
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
