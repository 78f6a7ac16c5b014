import { FIELD_DEFAULTS } from '../domain/bookmark-fields.ts';
import type { Bookmark, BookmarkEdit, NewBookmark, Tag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import { type ConflictPolicy, countTags, MERGED_FIELDS, mergeTags, showState } from './merge.ts';
import { MirrorConflict, mirrorBookmarks } from './mirror.ts';
import type {
  BookmarkState,
  CollectionStore,
  Intent,
  MergedField,
  MergedValue,
  PendingWrite,
  Report,
} from './outbox.ts';
import { finishAttempts, type Pushing, pushUnlessFull, pushWrites } from './push.ts';
import type { CopyFault } from './repair.ts';
import { type Requester, type RequestOptions, WITHOUT_END } from './requester.ts';
import { inTurn } from './turns.ts';
import { verifyCopy } from './verify.ts';
import type { ChangedIds } from './watchers.ts';

export interface CollectionOptions {
  /**
   * How conflicts are resolved. A conflict is a field that was changed both in this copy and by another client.
   * Default: `theirs`, which keeps the service's value. Each conflict is reported.
   */
  onConflict?: ConflictPolicy | undefined;
}

/**
 * The fields to change. `tags` is the complete new list. The store keeps only the added and the removed tags, so that
 * `sync` can merge them with changes of other clients.
 */
export type LocalEdit = Omit<BookmarkEdit, 'id' | 'if_updated_at'>;

export interface CollectionFollowOptions {
  /**
   * The longest time in seconds that the service may hold a request, 1 to 30. Default: as long as the service allows,
   * usually 29.
   */
  waitSeconds?: number | undefined;
  /** Aborting this signal ends `follow`, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A range of bookmarks, in order of ids. */
interface Range {
  /** Leaves out all bookmarks up to this id. Default: none. */
  afterId?: number | undefined;
  /** The largest number of bookmarks to return. Default: no limit. */
  limit?: number | undefined;
}

/** Thrown if the local copy has no bookmark with the requested id. */
export class NotInCollection extends Error {
  override readonly name = 'NotInCollection';
}

/** How long `sync` and `verify` try to reach the service by default, in ms. An offline app then learns it soon. */
const UNREACHABLE_FOR_MS = 3_000;

/** How many times one `sync` may start again because another process has changed the same store. */
const MAX_RESTARTS = 100;

/** Ends a held poll of `follow`, because there are writes to send. */
const WOKEN = new Error('there are writes to send');

/**
 * A local copy of the user's bookmarks that can be changed offline. All methods except `sync` and `follow` use only the
 * store.
 * `sync` sends the writes in order and reads the changes of other clients. Even after a crash, no write is applied
 * twice, and a write that is not applied is reported.
 */
export class Collection {
  readonly #requester: Requester;
  readonly #store: CollectionStore;
  readonly #policy: ConflictPolicy;

  constructor(requester: Requester, store: CollectionStore, options: CollectionOptions = {}) {
    this.#requester = requester;
    this.#store = store;
    this.#policy = options.onConflict ?? 'theirs';
  }

  /**
   * Returns a bookmark with its pending changes applied. The negative id that `add` returned stays valid after the
   * service has assigned the final id.
   */
  async get(id: number): Promise<Bookmark | undefined> {
    return showState(await this.#store.read(id));
  }

  /**
   * Returns the bookmarks with their pending changes applied, in order of ids. Bookmarks that the service does not have
   * yet have negative ids, so they come first. With `afterId` and `limit`, returns only the first bookmarks above that
   * id.
   */
  async list({
    afterId = Number.MIN_SAFE_INTEGER,
    limit = Number.MAX_SAFE_INTEGER,
  }: Range = {}): Promise<Bookmark[]> {
    const shown: Bookmark[] = [];
    let lastId = afterId;
    for (let isWhole = false; !isWhole && shown.length < limit; ) {
      const wanted = limit - shown.length;
      const states = await this.#store.readPage(lastId, wanted);
      for (const bookmark of states.map(showState)) if (bookmark !== undefined) shown.push(bookmark);
      lastId = states.at(-1)?.id ?? lastId;
      isWhole = states.length < wanted;
    }
    return shown;
  }

  /**
   * Returns all tags with their numbers of bookmarks, as `/tags/list` does, with the pending changes applied. A tag that
   * the service does not have yet has the id 0.
   */
  async tags(): Promise<Tag[]> {
    const { tags, written } = await this.#store.readTagCounts();
    return countTags(tags, written);
  }

  /**
   * Calls `listener` with the ids of bookmarks after they have changed in the copy, or with `all` if any bookmark may
   * have changed. Includes the changes of other tabs, and of other processes. Returns a function that ends this.
   */
  watch(listener: (ids: ChangedIds) => void): () => void {
    return this.#store.watch(listener);
  }

  /** Adds a bookmark. Its id is negative until the service has assigned one. */
  async add(bookmark: NewBookmark): Promise<Bookmark> {
    const { tags = [], created_at, on_duplicate = 'add' } = bookmark;
    const intent: Intent = {
      kind: 'add',
      bookmark: {
        ...fillFields(bookmark),
        // Merging into an empty list removes duplicates.
        tags: mergeTags([], trimAll(tags), []).map(({ name }) => name),
        // The form in which the service returns times. If the time is invalid, the service refuses the bookmark.
        // Without a time, uses the wall clock, because the client's clock may stop while the computer sleeps.
        created_at:
          created_at === undefined ? new Date().toISOString() : (parseTimestamp(created_at) ?? created_at),
      },
      onDuplicate: on_duplicate,
    };
    const [state] = await this.#store.update([0], () => ({ writes: [{ id: 0, intent, seen: undefined }] }));
    return requireBookmark(state!, state!.id);
  }

  /** Changes the given fields. Rejects with `NotInCollection` if the bookmark does not exist. */
  async edit(id: number, edit: LocalEdit): Promise<Bookmark> {
    return requireBookmark(await this.#write(id, (shown) => toIntent(shown, edit)), id);
  }

  /** Moves a bookmark to the trash. Rejects with `NotInCollection` if it does not exist. */
  async delete(id: number): Promise<void> {
    await this.#write(id, (bookmark) => ({ kind: 'delete', bookmark }));
  }

  /**
   * Takes back the deletion of a bookmark. Rejects with `NotInCollection` if there is no pending deletion, or if it may
   * have been sent. The bookmark is then in the trash.
   */
  async undelete(id: number): Promise<Bookmark> {
    const [state] = await this.#store.update([id], ({ writes }) => {
      const last = writes.at(-1);
      if (last?.intent.kind !== 'delete' || last.attempt !== undefined)
        throw new NotInCollection(`bookmark ${id} has no deletion that was not sent yet`);
      return { writes: writes.slice(0, -1) };
    });
    return requireBookmark(state!, id);
  }

  /**
   * Calls `decide` with the bookmark as the user sees it, and appends a write with the returned intent. Changes nothing
   * if `decide` returns undefined.
   */
  async #write(id: number, decide: (shown: Bookmark) => Intent | undefined): Promise<BookmarkState> {
    const [state] = await this.#store.update([id], (before) => {
      const intent = decide(requireBookmark(before, id));
      if (intent === undefined) return {};
      const lastWrite = before.writes.at(-1);
      const seen = lastWrite === undefined ? before.row?.updated_at : lastWrite.seen;
      return { writes: [...before.writes, { id: before.id, intent, seen }] };
    });
    return state!;
  }

  /** Returns the writes that the service has not confirmed yet, in order. */
  pending(): Promise<PendingWrite[]> {
    return this.#store.readOutbox();
  }

  /**
   * Returns the reports about writes that were not applied, or not exactly as requested. A report is kept until it is
   * acknowledged.
   */
  reports(): Promise<Report[]> {
    return this.#store.readReports();
  }

  /** Removes these reports. Call this after you have shown them or stored them elsewhere. */
  async acknowledge(reports: readonly Report[]): Promise<void> {
    await this.#store.dropReports(reports.map(({ seq }) => seq));
  }

  /**
   * Sends pending writes and brings the copy up to date. Resolves with all reports that are not acknowledged. If a
   * request gets no response, it is retried for 3 s from its start. Pass `unreachableForMs` or `retryForMs` to try
   * longer. After a status of 429 or 5xx, a request is retried for `retryForMs`. If it still fails, `sync` rejects,
   * and the next `sync` continues where this one stopped.
   */
  sync(options: RequestOptions = {}): Promise<Report[]> {
    return this.#run(options, async (pushing) => {
      await this.#exchange(pushing);
      return this.reports();
    });
  }

  /**
   * Brings the copy up to date, compares it with the service, repairs it, and resolves with what was wrong: see
   * `Mirror.verify`. Sends no pending writes. Call it before `sync`, so that a pending edit finds a bookmark that the
   * copy has lost. A request that gets no response is retried as in `sync`.
   */
  verify(options: RequestOptions = {}): Promise<CopyFault[]> {
    return this.#run(options, async (pushing) => {
      await finishAttempts(pushing);
      await pushing.pull();
      return verifyCopy(this.#requester, this.#store, pushing.options);
    });
  }

  /** Calls `work` after earlier calls have ended. Calls it again if another process has changed the store meanwhile. */
  #run<T>(options: RequestOptions, work: (pushing: Pushing) => Promise<T>): Promise<T> {
    const unreachableForMs = options.unreachableForMs ?? options.retryForMs ?? UNREACHABLE_FOR_MS;
    return inTurn(this, () => this.#repeat(this.#pushing({ ...options, unreachableForMs }), work));
  }

  /**
   * Keeps the copy up to date, and sends each write as soon as it is made, in this or another tab. Retries after lost
   * connections and temporary errors for as long as they last. Never resolves. Rejects with the signal's reason after an
   * abort, or with an `ApiError` if the service refuses a request, for example because the token was revoked. `watch`
   * says what has changed.
   */
  async follow({ waitSeconds, signal }: CollectionFollowOptions = {}): Promise<never> {
    const { clock } = this.#requester.timing;
    const pushing = this.#pushing({ ...WITHOUT_END, signal });
    const hasWrites = async () => (await this.#store.readOutbox(1)).length > 0;
    /** How long the service has no room for more responses, in seconds. Until then, no write is sent. */
    let fullForSeconds: number | undefined;
    let wake = new AbortController();
    const unwatch = this.#store.watch(() => {
      const current = wake;
      if (fullForSeconds !== undefined) return;
      // If the store cannot be read, the loop below fails too.
      void hasWrites().then(
        (has) => has && current.abort(WOKEN),
        () => {},
      );
    });
    try {
      for (let isFirst = true; ; isFirst = false) {
        let cancelWake = () => {};
        try {
          // The changes are read first, so that the writes are merged with the newest state. Later, polls have read them.
          if (isFirst) await inTurn(this, pushing.pull);
          fullForSeconds = await inTurn(this, () => pushUnlessFull(pushing));
          const poll = new AbortController();
          wake = poll;
          if (fullForSeconds !== undefined)
            cancelWake = clock.after(fullForSeconds * 1_000, () => poll.abort(WOKEN));
          else if (await hasWrites()) continue;
          await this.#poll(waitSeconds, AbortSignal.any([poll.signal, ...(signal ? [signal] : [])]));
        } catch (error) {
          // `MirrorConflict` means that another tab or process has changed the store. The loop then starts again.
          if (error !== WOKEN && !(error instanceof MirrorConflict)) throw error;
        } finally {
          cancelWake();
        }
      }
    } finally {
      unwatch();
    }
  }

  #pushing(options: RequestOptions): Pushing {
    const pull = () => this.#pull(options);
    return { requester: this.#requester, store: this.#store, policy: this.#policy, options, pull };
  }

  async #repeat<T>(pushing: Pushing, work: (pushing: Pushing) => Promise<T>): Promise<T> {
    for (let restarts = 0; ; restarts += 1) {
      try {
        return await work(pushing);
      } catch (error) {
        // `MirrorConflict` means that another process is sending a write or has applied a page in the meantime. The
        // loop then starts again from the new state.
        if (!(error instanceof MirrorConflict) || restarts === MAX_RESTARTS) throw error;
      }
    }
  }

  async #exchange(pushing: Pushing): Promise<void> {
    // The outcome of a batch that was already sent must be known before a page is applied: see `requireNoAttempt`.
    await finishAttempts(pushing);
    // Changes are read before writes are sent. So each write is merged with the newest state, and the service rarely
    // refuses it with `CONFLICT`.
    await pushing.pull();
    if ((await this.#store.readOutbox(1)).length > 0) {
      await pushWrites(pushing);
      await pushing.pull();
    }
  }

  /** Applies changes as they are made, until the signal is aborted. */
  async #poll(waitSeconds: number | undefined, signal: AbortSignal): Promise<void> {
    const pages = mirrorBookmarks(this.#requester, { store: this.#store, waitSeconds, signal });
    for await (const _ of pages);
  }

  async #pull(options: RequestOptions): Promise<void> {
    const pages = mirrorBookmarks(this.#requester, {
      store: this.#store,
      follow: false,
      request: options,
      signal: options.signal,
    });
    // The iteration itself applies the pages to the store.
    for await (const _ of pages);
  }
}

/**
 * Returns a bookmark with its pending changes. Throws `NotInCollection` if the bookmark does not exist. The message of
 * the error contains `id`, the id that the user passed.
 */
function requireBookmark(state: BookmarkState, id: number): Bookmark {
  const shown = showState(state);
  if (shown === undefined) throw new NotInCollection(`there is no bookmark ${id}`);
  return shown;
}

/** Returns a value as the service stores it. */
const trim = (value: MergedValue): MergedValue => (typeof value === 'string' ? value.trim() : value);

/** Returns the fields of a new bookmark, except its tags and times, as the service stores them. */
const fillFields = (given: NewBookmark) =>
  Object.fromEntries(
    MERGED_FIELDS.map((name) => [name, trim(given[name] ?? (FIELD_DEFAULTS[name] as MergedValue))]),
  ) as Pick<Bookmark, MergedField>;

const trimAll = (names: readonly string[]): string[] => names.map((name) => name.trim());

const normalizeNames = (tags: Bookmark['tags']): Set<string> =>
  new Set(tags.map(({ name }) => foldText(name)));

/** Returns how an edit differs from the bookmark that the user saw. Returns undefined if nothing changes. */
function toIntent(shown: Bookmark, edit: LocalEdit): Intent | undefined {
  const intent: Intent = { kind: 'edit', fields: {}, addTags: [], removeTags: [] };
  for (const name of MERGED_FIELDS) {
    const given = edit[name];
    if (given === undefined) continue;
    const to = trim(given);
    if (to !== shown[name]) intent.fields[name] = { from: shown[name], to };
  }
  if (edit.tags !== undefined) {
    // Merging into an empty list removes duplicates.
    const wanted = mergeTags([], trimAll(edit.tags), []);
    const [wantedNames, shownNames] = [normalizeNames(wanted), normalizeNames(shown.tags)];
    intent.addTags = wanted.map(({ name }) => name).filter((name) => !shownNames.has(foldText(name)));
    intent.removeTags = shown.tags.filter(({ name }) => !wantedNames.has(foldText(name)));
  }
  const { fields, addTags, removeTags } = intent;
  const isEmpty = Object.keys(fields).length + addTags.length + removeTags.length === 0;
  return isEmpty ? undefined : intent;
}
