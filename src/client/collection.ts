import type { Bookmark, NewBookmark } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { type ConflictPolicy, mergeTags, showState, TEXT_FIELDS } from './merge.ts';
import { MirrorConflict, mirrorBookmarks } from './mirror.ts';
import type { CollectionStore, Intent, PendingWrite, Report } from './outbox.ts';
import { finishAttempt, type Pushing, pushWrites } from './push.ts';
import type { Requester, RequestOptions } from './requester.ts';
import type { Timing } from './timing.ts';

export interface CollectionOptions {
  /** Settles a field that was changed on both sides; default: `theirs`. Each one is reported. */
  onConflict?: ConflictPolicy | undefined;
}

/** The fields to change; a list of tags is what the bookmark shall have, and is sent as additions and removals. */
export interface LocalEdit {
  url?: string | undefined;
  title?: string | undefined;
  comment?: string | undefined;
  tags?: string[] | undefined;
}

/** There is no bookmark with this id in the local copy. */
export class NotInCollection extends Error {
  override readonly name = 'NotInCollection';
}

/** How often one `sync` begins again because another process uses the same store. */
const MAX_RESTARTS = 100;

/**
 * A local copy that can be written to. Reads and writes touch the store only; `sync` sends the writes, in order, and
 * brings the copy up to date. A write that the store has is applied exactly once, or reported, whatever crashes.
 */
export class Collection {
  readonly #requester: Requester;
  readonly #timing: Timing;
  readonly #store: CollectionStore;
  readonly #policy: ConflictPolicy;
  #syncing: Promise<unknown> = Promise.resolve();

  constructor(requester: Requester, timing: Timing, store: CollectionStore, options: CollectionOptions = {}) {
    this.#requester = requester;
    this.#timing = timing;
    this.#store = store;
    this.#policy = options.onConflict ?? 'theirs';
  }

  /** The bookmark, with what is not sent yet. The id that `add` returned works for good. */
  async get(id: number): Promise<Bookmark | undefined> {
    return showState(await this.#store.update(id, () => ({})));
  }

  /** All bookmarks, with what is not sent yet; those that the service does not know come first, with negative ids. */
  async list(): Promise<Bookmark[]> {
    const { rows, writes: outbox } = await this.#store.readAll();
    const writes = new Map<number, PendingWrite[]>();
    for (const write of outbox) {
      writes.set(write.id, [...(writes.get(write.id) ?? []), write]);
    }
    const shown: (Bookmark | undefined)[] = [];
    for (const row of rows) {
      shown.push(showState({ id: row.id, row, writes: writes.get(row.id) ?? [] }));
      writes.delete(row.id);
    }
    for (const [id, pending] of writes) shown.push(showState({ id, row: undefined, writes: pending }));
    return shown.filter((bookmark) => bookmark !== undefined).sort((a, b) => a.id - b.id);
  }

  /** Adds a bookmark. Its id is negative until the service has given it one. */
  async add(bookmark: NewBookmark): Promise<Bookmark> {
    const { url, title = '', comment = '', tags = [], created_at, on_duplicate = 'add' } = bookmark;
    const intent: Intent = {
      kind: 'add',
      bookmark: {
        url: url.trim(),
        title: title.trim(),
        comment: comment.trim(),
        tags: mergeTags([], trimAll(tags), []).map(({ name }) => name),
        created_at: created_at ?? new Date(this.#timing.clock.now()).toISOString(),
      },
      onDuplicate: on_duplicate,
    };
    return showState(
      await this.#store.update(0, () => ({ writes: [{ id: 0, intent, seen: undefined }] })),
    ) as Bookmark;
  }

  /** Changes the given fields; rejects with `NotInCollection` where there is no such bookmark. */
  async edit(id: number, edit: LocalEdit): Promise<Bookmark> {
    return (await this.#write(id, (shown) => toIntent(shown, edit))) as Bookmark;
  }

  /** Deletes a bookmark; rejects with `NotInCollection` where there is no such bookmark. */
  async delete(id: number): Promise<void> {
    await this.#write(id, (bookmark) => ({ kind: 'delete', bookmark }));
  }

  async #write(id: number, decide: (shown: Bookmark) => Intent | undefined): Promise<Bookmark | undefined> {
    const state = await this.#store.update(id, (before) => {
      const shown = showState(before);
      if (shown === undefined) throw new NotInCollection(`there is no bookmark ${id}`);
      const intent = decide(shown);
      if (intent === undefined) return {};
      const seen = before.writes.length > 0 ? before.writes.at(-1)!.seen : before.row?.updated_at;
      return { writes: [...before.writes, { id: before.id, intent, seen }] };
    });
    return showState(state);
  }

  /** The writes that are not confirmed yet, in order. */
  pending(): Promise<PendingWrite[]> {
    return this.#store.readOutbox();
  }

  /** What was not simply applied. Reports stay until they are acknowledged. */
  reports(): Promise<Report[]> {
    return this.#store.readReports();
  }

  /** Removes reports that were shown, or stored elsewhere. */
  async acknowledge(reports: readonly Report[]): Promise<void> {
    if (reports.length > 0) await this.#store.dropReports(Math.max(...reports.map(({ seq }) => seq)));
  }

  /**
   * Sends what is pending and brings the copy up to date; resolves with all reports that are not acknowledged. Lost
   * connections, 429 and 5xx are retried as the client does; then it rejects, and the next `sync` goes on from there.
   */
  sync(options: RequestOptions = {}): Promise<Report[]> {
    const run = this.#syncing.then(() => this.#sync(options));
    this.#syncing = run.catch(() => {});
    return run;
  }

  async #sync(options: RequestOptions): Promise<Report[]> {
    const pushing: Pushing = {
      requester: this.#requester,
      store: this.#store,
      policy: this.#policy,
      now: () => this.#timing.clock.now(),
      options,
    };
    for (let restarts = 0; ; restarts += 1) {
      try {
        await this.#exchange(pushing);
        return await this.reports();
      } catch (error) {
        // Another process has sent a write or applied a page meanwhile. Beginning again helps it, or finds it done.
        if (!(error instanceof MirrorConflict) || restarts === MAX_RESTARTS) throw error;
      }
    }
  }

  async #exchange(pushing: Pushing): Promise<void> {
    // A page must not be applied while it is unknown whether a request was done: see `MirrorStore.apply`.
    await finishAttempt(pushing);
    // Merging with the newest state leaves little to conflict.
    await this.#pull(pushing.options);
    if ((await this.#store.readNext()) !== undefined) {
      await pushWrites(pushing);
      await this.#pull(pushing.options);
    }
  }

  async #pull(options: RequestOptions): Promise<void> {
    const pages = mirrorBookmarks(this.#requester, this.#timing, {
      store: this.#store,
      follow: false,
      request: options,
      signal: options.signal,
    });
    for await (const _ of pages);
  }
}

const trimAll = (names: readonly string[]): string[] => names.map((name) => name.trim());

/** The intent of an edit; undefined where nothing changes. */
function toIntent(shown: Bookmark, edit: LocalEdit): Intent | undefined {
  const intent: Intent = { kind: 'edit', fields: {}, addTags: [], removeTags: [] };
  for (const name of TEXT_FIELDS) {
    const to = edit[name]?.trim();
    if (to !== undefined && to !== shown[name]) intent.fields[name] = { from: shown[name], to };
  }
  if (edit.tags !== undefined) {
    const wanted = mergeTags([], trimAll(edit.tags), []);
    const missingIn = (tags: Bookmark['tags']) => {
      const names = new Set(tags.map(({ name }) => foldText(name)));
      return ({ name }: { name: string }) => !names.has(foldText(name));
    };
    intent.addTags = wanted.filter(missingIn(shown.tags)).map(({ name }) => name);
    intent.removeTags = shown.tags.filter(missingIn(wanted));
  }
  const { fields, addTags, removeTags } = intent;
  const isEmpty = Object.keys(fields).length + addTags.length + removeTags.length === 0;
  return isEmpty ? undefined : intent;
}
