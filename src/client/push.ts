import type { Bookmark, EditedBookmark } from '../domain/resources.ts';
import { ApiError } from './errors.ts';
import { type ConflictPolicy, planWrite } from './merge.ts';
import type { Attempt, BookmarkState, CollectionStore, PendingWrite, Report, StateChange } from './outbox.ts';
import { type Requester, type RequestOptions, randomId } from './requester.ts';

/**
 * Sends the writes of an outbox, in order. Each write goes through these steps. A crash after any step loses nothing.
 *
 * 1. plan: merge the write with the service's bookmark, and store the request and its key (`attempt`)
 * 2. send: send the same request under the same key until it is answered
 * 3. finish: in one transaction, store the bookmark from the response, remove the write, and add reports
 *
 * On `CONFLICT` and `NOT_FOUND` it reads the bookmark again and returns to step 1.
 */
export interface Pushing {
  requester: Requester;
  store: CollectionStore;
  policy: ConflictPolicy;
  now: () => number;
  options: RequestOptions;
}

/** The service keeps responses for 24 hours. A later repeat of an add first checks whether the bookmark exists. */
const KEY_LIFE_MS = 23 * 3_600_000;

const PATHS = { add: '/bookmarks/add', edit: '/bookmarks/edit', delete: '/bookmarks/delete' } as const;

/** Codes of refusals that are final: a repeat gets the same response. */
const REFUSALS: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'LIMIT_EXCEEDED']);

/** Finishes the write whose request may have reached the service. Only then can the next page be applied. */
export async function finishAttempt(pushing: Pushing): Promise<void> {
  const { requester, store, options } = pushing;
  const write = await store.readNext();
  if (write?.attempt === undefined) return;
  // Rejects if the token now belongs to another account, which must not receive the request.
  await requester.request('/bookmarks/changes', { cursor: await store.readCursor(), limit: 1 }, options);
  await send(pushing, write, write.attempt);
}

/**
 * Sends all writes. Rejects if the service cannot be reached or refuses the token. The remaining writes stay in the
 * outbox.
 */
export async function pushWrites(pushing: Pushing): Promise<void> {
  for (;;) {
    const write = await pushing.store.readNext();
    if (write === undefined) return;
    const attempt = write.attempt ?? (await begin(pushing, write));
    if (attempt !== undefined) await send(pushing, write, attempt);
  }
}

/** Stores the request for a write. Removes the write instead if there is nothing to send. */
async function begin(
  { store, policy, now }: Pushing,
  { id, seq }: PendingWrite,
): Promise<Attempt | undefined> {
  let attempt: Attempt | undefined;
  await store.update(id, (state) => {
    const [write] = state.writes;
    // Another process was faster.
    if (write?.seq !== seq || write.attempt !== undefined) return {};
    const plan = planWrite(write, state.row, policy);
    if (plan.kind === 'gone' || plan.kind === 'kept') return drop(state, [toReport(write, plan.kind)]);
    if (plan.kind === 'done') return drop(state, reportConflicts(write, plan.conflicts));
    const { body, version, conflicts } = plan;
    attempt = { key: randomId(), body, version, conflicts, startedMs: now() };
    return { writes: [{ ...write, attempt }, ...state.writes.slice(1)] };
  });
  return attempt;
}

async function send(pushing: Pushing, write: PendingWrite, attempt: Attempt): Promise<void> {
  const { store } = pushing;
  try {
    const response = await request(pushing, write, attempt);
    await store.update(write.id, (state) => {
      if (!isCurrent(state, attempt)) return {};
      return write.intent.kind === 'delete' ? { ...drop(state, []), row: null } : succeed(state, response);
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 'CONFLICT' || error.code === 'NOT_FOUND') await refresh(pushing, write, attempt);
    else if (REFUSALS.has(error.code)) await refuse(store, write, attempt, error);
    else throw error;
  }
}

async function request(
  { requester, now, options }: Pushing,
  { intent }: PendingWrite,
  { key, body, startedMs }: Attempt,
): Promise<Bookmark | EditedBookmark> {
  if (intent.kind === 'add' && now() - startedMs > KEY_LIFE_MS) {
    const { url, created_at } = intent.bookmark;
    const { bookmarks } = await requester.request('/bookmarks/get', { url }, options);
    const added = bookmarks.find((one) => Date.parse(one.created_at) === Date.parse(created_at));
    if (added !== undefined) return added;
  }
  const path = PATHS[intent.kind];
  const response = await requester.request(path, body as never, { ...options, idempotencyKey: key });
  return response as Bookmark | EditedBookmark;
}

/**
 * Stores a successful response. Later writes that were made on the same version now build on the response's version,
 * unless another client changed the bookmark in between.
 */
function succeed(state: BookmarkState, response: Bookmark | EditedBookmark): StateChange {
  const [write, ...rest] = state.writes as [PendingWrite, ...PendingWrite[]];
  const { version, conflicts } = write.attempt!;
  const reports = reportConflicts(write, conflicts);
  const { intent, seen } = write;
  const isOther = intent.kind === 'add' && 'created_at' in response && !isSame(intent, response);
  if (isOther) reports.push(toReport(write, 'duplicate'));
  const sees = version === seen && !isOther;
  const writes = rest.map((next) =>
    sees && next.seen === seen ? { ...next, seen: response.updated_at } : next,
  );
  const row = 'created_at' in response ? response : state.row && { ...state.row, ...response };
  return { writes, reports, ...(row !== undefined && { row }) };
}

const isSame = (
  { bookmark }: Extract<PendingWrite['intent'], { kind: 'add' }>,
  { created_at }: Bookmark,
): boolean => Date.parse(bookmark.created_at) === Date.parse(created_at);

/** Reads the current bookmark, so that the write is planned again. */
async function refresh(
  { requester, store, options }: Pushing,
  { id }: PendingWrite,
  attempt: Attempt,
): Promise<void> {
  const { bookmarks } = await requester.request('/bookmarks/get', { id }, options);
  await store.update(id, (state) => {
    if (!isCurrent(state, attempt)) return {};
    const [write, ...rest] = state.writes as [PendingWrite, ...PendingWrite[]];
    return { writes: [{ ...write, attempt: undefined }, ...rest], row: bookmarks[0] ?? null };
  });
}

/** Removes a refused write. If it was an add, also removes the later writes to that bookmark. */
async function refuse(
  store: CollectionStore,
  { id }: PendingWrite,
  attempt: Attempt,
  { code, message }: ApiError,
): Promise<void> {
  await store.update(id, (state) => {
    if (!isCurrent(state, attempt)) return {};
    const refused = id < 0 ? state.writes : state.writes.slice(0, 1);
    const reports = refused.map((write) => ({ ...toReport(write, 'refused'), code, message }));
    return { writes: state.writes.slice(refused.length), reports };
  });
}

const isCurrent = ({ writes: [write] }: BookmarkState, { key }: Attempt): boolean =>
  write?.attempt?.key === key;

const drop = ({ writes }: BookmarkState, reports: Report[]): StateChange => ({
  writes: writes.slice(1),
  reports,
});

const toReport = ({ seq, id, intent }: PendingWrite, kind: Report['kind']): Report => ({
  seq,
  id,
  kind,
  intent,
});

const reportConflicts = (write: PendingWrite, conflicts: Attempt['conflicts']): Report[] =>
  conflicts.map((conflict) => ({ ...toReport(write, 'conflict'), conflict }));
