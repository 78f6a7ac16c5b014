import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type BatchOperation, type BatchResults, BookmarkClient } from '../../src/client/index.ts';
import { beginCall, type Pending, settleCall } from './calls.ts';
import type { AnyCall, Asked, Journal } from './journal.ts';
import type { Random } from './random.ts';
import { type RecordedFetch, recordFetch } from './recorded-fetch.ts';
import { drawIds, drawKnown, drawTags, PASSING_PREFIX, type SharedUser } from './users.ts';

export interface WriterOptions {
  name: string;
  origin: string;
  token: string;
  user: SharedUser;
  journal: Journal;
  draw: Random;
  /** The mean pause between two calls. */
  pauseMs: number;
  /** Whether the writer also imports with `replace`. Otherwise it only imports with `merge`. */
  withReplaces: boolean;
}

type Result = BatchResults['results'][number];

/** A write that is sent alone or in a batch. */
interface Write {
  call: Pending;
  operation: BatchOperation;
  sendAlone: () => Promise<Result>;
}

/** The client library retries a call for at most this long. */
const RETRY_MS = 30_000;

/**
 * A client that adds, edits and deletes bookmarks, alone and in batches, imports bookmarks, and changes tags. It
 * journals the result of each call.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #recorded: RecordedFetch;
  readonly #client: BookmarkClient;
  #made = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#recorded = recordFetch(options.journal, options.token);
    this.#client = new BookmarkClient({
      baseUrl: `${options.origin}/api/v1`,
      token: options.token,
      fetch: this.#recorded.fetch,
      retryForMs: RETRY_MS,
    });
  }

  /** Works until the signal aborts, and then waits for the call in flight. */
  async run(signal: AbortSignal): Promise<void> {
    const { draw, pauseMs } = this.#options;
    while (!signal.aborted) {
      await sleep(draw.integer(pauseMs / 2, pauseMs * 1.5), undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#act();
    }
  }

  async #act(): Promise<void> {
    const drawn = this.#options.draw.next();
    if (drawn < 0.36) return this.#write([this.#drawAdd()]);
    if (drawn < 0.47) return this.#addRaw();
    if (drawn < 0.6) return this.#write([await this.#drawEdit()]);
    if (drawn < 0.64) return this.#editSeveral();
    if (drawn < 0.72) return this.#write([this.#drawDelete()]);
    if (drawn < 0.77) return this.#writeBatch();
    if (drawn < 0.8) return this.#deleteSeveral();
    if (drawn < 0.85) return this.#import('merge');
    if (drawn < 0.865) return this.#import(this.#options.withReplaces ? 'replace' : 'merge');
    return this.#workOnTags();
  }

  /** Makes a bookmark to add. No other call uses its url, except imports that repeat it. */
  #make(): Asked {
    const { name, user, draw } = this.#options;
    this.#made += 1;
    const url = `https://chaos.example/${name}/${this.#made}`;
    return { url, title: `title ${name} ${this.#made}`, comment: '', tags: drawTags(user, draw) };
  }

  /** Sends a write alone, or several in a batch. */
  async #write(drawn: (Write | undefined)[]): Promise<void> {
    const writes = drawn.filter((write) => write !== undefined);
    const [first, ...more] = writes;
    if (first === undefined) return;
    const calls = writes.map(({ call }) => this.#begin(call));
    const send = async () => {
      if (more.length === 0) return [await first.sendAlone()];
      const operations = writes.map(({ operation }) => operation);
      return (await this.#client.writeBookmarks({ operations })).results;
    };
    // The request starts after this tick. By then, each call has begun to count the attempts.
    const results = Promise.resolve().then(send);
    const settled = calls.map((call, n) =>
      this.#settle(call, async () => this.#note(call, (await results)[n]!)),
    );
    await Promise.all(settled);
  }

  /** Notes the response to a write. Throws if the write was refused. */
  #note(call: AnyCall, result: Result): void {
    if ('code' in result) throw new ApiError(result.error, { code: result.code, status: 200, requestId: '' });
    if (call.kind === 'add' && 'id' in result) {
      call.id = result.id;
      this.#options.user.known.push({ id: result.id, url: call.url });
    }
    if (call.kind === 'edit' && 'id' in result) call.version = result.updated_at;
  }

  async #writeBatch(): Promise<void> {
    const { draw } = this.#options;
    const writes: (Write | undefined)[] = [];
    for (let left = draw.integer(2, 20); left > 0; left -= 1) {
      const drawn = draw.next();
      if (drawn < 0.6) writes.push(this.#drawAdd());
      else writes.push(drawn < 0.85 ? await this.#drawEdit() : this.#drawDelete());
    }
    await this.#write(writes);
  }

  #drawAdd(): Write {
    const asked = this.#make();
    return {
      call: { kind: 'add', ...asked, isKeyed: true, id: none },
      operation: { do: 'add', ...asked },
      sendAlone: () => this.#client.addBookmark(asked),
    };
  }

  /** Adds a bookmark as a simple script would, without an idempotency key and without retries. */
  async #addRaw(): Promise<void> {
    const { origin, token, user } = this.#options;
    const asked = this.#make();
    const call = this.#begin({ kind: 'add', ...asked, isKeyed: false, id: none });
    await this.#settle(call, async () => {
      const response = await this.#recorded.fetch(`${origin}/api/v1/bookmarks/add`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(asked),
        signal: AbortSignal.timeout(30_000),
      });
      const body = await response.json();
      if (response.ok) {
        call.id = body.id;
        user.known.push({ id: body.id, url: asked.url });
      } else throw new ApiError('refused', { code: body.code, status: response.status, requestId: '' });
    });
  }

  async #drawEdit(): Promise<Write | undefined> {
    const { user, draw, name } = this.#options;
    const isBound = draw.chance(0.5);
    const known = isBound ? user.known.at(-1) : drawKnown(user, draw, false);
    if (known === undefined) return undefined;
    const seen = isBound ? await this.#readVersion(known.id) : undefined;
    if (isBound && seen === undefined) return undefined;
    this.#made += 1;
    const change = {
      title: draw.chance(0.7) ? `edited ${name} ${this.#made}` : undefined,
      comment: draw.chance(0.5) ? `comment ${name} ${this.#made}` : undefined,
      tags: draw.chance(0.4) ? drawTags(user, draw) : undefined,
    };
    const edit = { id: known.id, ...change, if_updated_at: seen };
    return {
      call: { kind: 'edit', id: known.id, ...change, seen, version: undefined },
      operation: { do: 'edit', ...edit },
      sendAlone: () => this.#client.editBookmark(edit),
    };
  }

  /** Reads a bookmark's version and then waits, like a person who edits for a while. Returns undefined on failure. */
  async #readVersion(id: number): Promise<string | undefined> {
    const { draw, pauseMs } = this.#options;
    const found = await this.#client.getBookmarks({ id }).catch(() => undefined);
    await sleep(draw.integer(0, pauseMs));
    return found?.bookmarks[0]?.updated_at;
  }

  #drawDelete(): Write | undefined {
    const { user, draw } = this.#options;
    const known = drawKnown(user, draw, draw.chance(0.9));
    if (known === undefined) return undefined;
    const deletion = { id: known.id, trash: draw.chance(0.5) };
    return {
      call: { kind: 'delete', ids: [known.id] },
      operation: { do: 'delete', ...deletion },
      sendAlone: () => this.#client.deleteBookmark(deletion),
    };
  }

  /** Deletes several bookmarks. Some of them may already be deleted. */
  async #deleteSeveral(): Promise<void> {
    const { user, draw } = this.#options;
    const ids = drawIds(user, draw, draw.chance(0.9));
    if (ids.length === 0) return;
    const call = this.#begin({ kind: 'delete', ids });
    await this.#settle(call, () => this.#client.deleteBookmarks({ ids, trash: draw.chance(0.5) }));
  }

  /**
   * Changes the tags of several bookmarks. Adds and removes only tags with `PASSING_PREFIX`, so that checks still know
   * which bookmarks have the lasting tags.
   */
  async #editSeveral(): Promise<void> {
    const { user, draw, name } = this.#options;
    const ids = drawIds(user, draw, false);
    if (ids.length === 0) return;
    this.#made += 1;
    const names = user.passing.map((tag) => tag.name);
    const removeTags = names.filter(() => draw.chance(0.3));
    const kept = names.filter((tag) => !removeTags.includes(tag) && draw.chance(0.5));
    const isFresh = kept.length + removeTags.length === 0 || draw.chance(0.2);
    const addTags = isFresh ? [...kept, `${PASSING_PREFIX}${name}-${this.#made}`] : kept;
    const call = this.#begin({ kind: 'edit several', ids, addTags, removeTags });
    await this.#settle(call, () =>
      this.#client.editBookmarks({ ids, add_tags: addTags, remove_tags: removeTags }),
    );
  }

  async #import(mode: 'merge' | 'replace'): Promise<void> {
    const { user, draw } = this.#options;
    const entries = Array.from({ length: draw.integer(2, 30) }, () => this.#make());
    const repeated: string[] = [];
    const invalid = mode === 'merge' && draw.chance(0.2) ? 1 : 0;
    if (mode === 'merge' && draw.chance(0.5)) {
      const known = drawKnown(user, draw, false);
      if (known !== undefined) repeated.push(known.url);
    }
    const sent = [
      ...entries,
      ...repeated.map((url) => ({ url })),
      ...(invalid > 0 ? [{ url: 'javascript:void(0)' }] : []),
    ];
    const call = this.#begin({
      kind: 'import',
      mode,
      entries,
      invalid,
      repeated,
      result: noResult,
      crashes: 0,
    });
    // Half of the calls are not retried, so that the response to their only attempt is recorded.
    const options = draw.chance(0.5) ? { retryForMs: 0 } : {};
    await this.#settle(call, async () => {
      const { imported, skipped, errors } = await this.#client.importBookmarks(
        { bookmarks: sent, mode },
        options,
      );
      call.result = { imported, skipped, errors: errors.length };
    });
  }

  async #workOnTags(): Promise<void> {
    const { user, draw, name } = this.#options;
    this.#made += 1;
    const fresh = `${PASSING_PREFIX}${name}-${this.#made}`;
    const operation = user.passing.length < 3 ? 'create' : draw.pick(TAG_OPERATIONS);
    if (operation === 'create') {
      const call = this.#begin({ kind: 'tag', operation, name: fresh });
      return this.#settle(call, async () => {
        const { id } = await this.#client.createTag({ name: fresh });
        user.passing.push({ id, name: fresh });
      });
    }
    const [tag] = user.passing.splice(draw.integer(0, user.passing.length - 1), 1);
    const call = this.#begin({ kind: 'tag', operation, name: operation === 'rename' ? fresh : tag!.name });
    if (operation === 'delete') return this.#settle(call, () => this.#client.deleteTag(tag!.id));
    if (operation === 'merge') {
      const into = draw.pick(user.passing);
      return this.#settle(call, () => this.#client.mergeTags({ id: tag!.id, into_id: into.id }));
    }
    return this.#settle(call, async () => {
      await this.#client.renameTag({ id: tag!.id, name: fresh });
      user.passing.push({ id: tag!.id, name: fresh });
    });
  }

  #begin<C extends Pending>(asked: C): C & AnyCall {
    return beginCall(this.#options.journal, this.#options.user.id, asked);
  }

  #settle(call: AnyCall, send: () => Promise<unknown>): Promise<void> {
    return settleCall(this.#recorded, call, send);
  }
}

const TAG_OPERATIONS = ['create', 'rename', 'delete', 'merge'] as const;

const none = undefined as number | undefined;
const noResult = undefined as { imported: number; skipped: number; errors: number } | undefined;
