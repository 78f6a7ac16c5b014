import assert from 'node:assert/strict';

/**
 * The contract as plain code over arrays, for one account. The model predicts every response. It shares no code with
 * the service, not even the normalization of text. It learns ids and times from responses, because only the service
 * knows them.
 */

/** A value that the first response defines and that every later response must repeat. */
export class Learned<T> {
  #value: T | undefined;
  readonly #accept: (value: unknown) => value is T;

  constructor(accept: (value: unknown) => value is T) {
    this.#accept = accept;
  }

  /** The value that was learned. Throws if no response has contained the value yet. */
  get value(): T {
    assert.notEqual(this.#value, undefined, 'no response has told this yet');
    return this.#value as T;
  }

  compare(actual: unknown, path: string): void {
    if (this.#value === undefined) {
      assert.ok(this.#accept(actual), `${path} cannot be ${JSON.stringify(actual)}`);
      this.#value = actual;
    } else assert.equal(actual, this.#value, path);
  }
}

/**
 * Compares a whole response, which must have every expected field and no others. Learns values that are not known yet.
 */
export function compare(actual: unknown, expected: unknown, path = 'response'): void {
  if (expected instanceof Learned) expected.compare(actual, path);
  else if (typeof expected !== 'object' || expected === null) assert.deepEqual(actual, expected, path);
  else compareParts(actual, expected, path);
}

function compareParts(actual: unknown, expected: object, path: string): void {
  assert.ok(typeof actual === 'object' && actual !== null, `${path} is ${JSON.stringify(actual)}`);
  assert.equal(Array.isArray(actual), Array.isArray(expected), path);
  assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort(), path);
  for (const [key, value] of Object.entries(expected)) {
    compare((actual as Record<string, unknown>)[key], value, `${path}.${key}`);
  }
}

type Id = Learned<number>;
type Time = Learned<string> | string;

export interface ModelTag {
  id: Id;
  name: string;
}

export interface ModelBookmark {
  id: Id;
  url: string;
  title: string;
  comment: string;
  tags: ModelTag[];
  created_at: Time;
  updated_at: Time;
}

/** An entry of an import, with the error that the service must report for it, if any. */
export interface ModelEntry {
  sent: unknown;
  error?: string;
  url?: string;
  title?: string;
  comment?: string;
  tags?: string[];
  created_at?: string;
  updated_at?: string;
}

/** The expected response: a body with status 200, or an error's status and code, with its message if known. */
export type Expected = { status: 200; body: unknown } | { status: number; code: string; error?: string };

const ok = (body: unknown): Expected => ({ status: 200, body });
const fault = (status: number, code: string, error?: string): Expected => ({
  status,
  code,
  ...(error !== undefined && { error }),
});
const LIMIT = fault(403, 'LIMIT_EXCEEDED');
const DUPLICATE = fault(400, 'VALIDATION_ERROR', 'url: another bookmark has this url');
const TAKEN = fault(400, 'VALIDATION_ERROR', 'name: another tag has this name');

/**
 * Normalizes a text (decision 5): NFC, lower case, and the same form for every sigma and for İ and i. Letters are converted one by one,
 * so that JavaScript does not treat a sigma at the end of a word differently.
 */
const fold = (text: string): string =>
  Array.from(text.normalize('NFC'), (letter) => letter.toLowerCase())
    .join('')
    .replace(/ς/g, 'σ')
    .replace(/i\u0307+/g, 'i')
    .normalize('NFC');

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes the percent-encoded letters of a url that are not ASCII, as people read them (decision 13). */
const decodeLetters = (url: string): string =>
  url.replace(/(%[89A-F][0-9A-F])+/gi, (encoded) => {
    try {
      return utf8.decode(Buffer.from(encoded.replaceAll('%', ''), 'hex'));
    } catch {
      return encoded;
    }
  });

const trim = (text: string): string => text.replace(/^\s+/u, '').replace(/\s+$/u, '');

const byBytes = (a: string, b: string): number => Buffer.from(a).compare(Buffer.from(b));

const byName = (a: ModelTag, b: ModelTag): number => byBytes(fold(a.name), fold(b.name));

/** Returns whether two urls have the same WHATWG serialization (decision 10). Trims the urls first. */
const sameUrl = (a: string, b: string): boolean => new URL(trim(a)).href === new URL(trim(b)).href;

/** One account. */
export class Model {
  bookmarks: ModelBookmark[] = [];
  tags: ModelTag[] = [];
  readonly cap: number;
  readonly #startedAt = Date.now();
  #lastId = 0;

  constructor(cap: number) {
    this.cap = cap;
  }

  /** The highest id in any response. */
  get lastId(): number {
    return this.#lastId;
  }

  add(sent: {
    url: string;
    title?: string;
    comment?: string;
    tags?: string[];
    created_at?: string;
    on_duplicate?: string;
  }): Expected {
    const same = this.bookmarks.findLast(({ url }) => sameUrl(url, sent.url));
    if (same !== undefined && sent.on_duplicate === 'return') return ok(same);
    if (same !== undefined && sent.on_duplicate === 'error') return DUPLICATE;
    if (this.bookmarks.length >= this.cap) return LIMIT;
    const now = sent.created_at ?? this.#newTime();
    const bookmark = {
      id: this.#newBookmarkId(),
      url: trim(sent.url),
      title: trim(sent.title ?? ''),
      comment: trim(sent.comment ?? ''),
      tags: this.#findOrCreateTags(sent.tags ?? []),
      created_at: now,
      updated_at: now,
    };
    this.bookmarks.push(bookmark);
    return ok(bookmark);
  }

  edit(id: number, sent: { url?: string; title?: string; comment?: string; tags?: string[] }): Expected {
    const bookmark = this.#find(id);
    if (bookmark === undefined) return fault(404, 'NOT_FOUND', 'the bookmark does not exist');
    if (sent.url !== undefined) bookmark.url = trim(sent.url);
    if (sent.title !== undefined) bookmark.title = trim(sent.title);
    if (sent.comment !== undefined) bookmark.comment = trim(sent.comment);
    if (sent.tags !== undefined) bookmark.tags = this.#findOrCreateTags(sent.tags);
    if (Object.keys(sent).length > 0) bookmark.updated_at = this.#newTime();
    const { created_at: _, ...edited } = bookmark;
    return ok(edited);
  }

  delete(id: number): Expected {
    const bookmark = this.#find(id);
    if (bookmark === undefined) return fault(404, 'NOT_FOUND', 'the bookmark does not exist');
    this.bookmarks = this.bookmarks.filter((other) => other !== bookmark);
    return ok({ deleted: true });
  }

  /** Edits the tags of the bookmarks with these ids. */
  editTags(ids: number[], { add_tags = [], remove_tags = [] }: Record<string, string[]>): Expected {
    const keys = (names: string[]) => names.map((name) => fold(trim(name)));
    if (keys(remove_tags).some((key) => keys(add_tags).includes(key))) return fault(400, 'VALIDATION_ERROR');
    const present = this.bookmarks.filter((bookmark) => ids.includes(bookmark.id.value));
    for (const bookmark of present) {
      const kept = bookmark.tags.filter(({ name }) => !keys(remove_tags).includes(fold(name)));
      const after = this.#findOrCreateTags([...kept.map(({ name }) => name), ...add_tags]);
      const isChanged =
        after.length !== bookmark.tags.length || after.some((tag) => !bookmark.tags.includes(tag));
      bookmark.tags = after;
      if (isChanged) bookmark.updated_at = this.#newTime();
    }
    return ok({ edited: true, count: present.length, missing: this.#listMissing(ids, present) });
  }

  deleteSeveral(ids: number[]): Expected {
    const present = this.bookmarks.filter((bookmark) => ids.includes(bookmark.id.value));
    this.bookmarks = this.bookmarks.filter((bookmark) => !present.includes(bookmark));
    return ok({ deleted: true, count: present.length, missing: this.#listMissing(ids, present) });
  }

  #listMissing(ids: number[], present: ModelBookmark[]): number[] {
    return [...new Set(ids)].filter((id) => !present.some((bookmark) => bookmark.id.value === id));
  }

  search(sent: {
    query?: string;
    tag?: string;
    tag_under?: string;
    page?: number;
    per_page?: number;
  }): Expected {
    const { page = 1, per_page = 50 } = sent;
    const path = sent.tag_under && fold(trim(sent.tag_under)).replace(/\/+$/, '');
    if (path === '') return fault(400, 'VALIDATION_ERROR', 'tag_under: may not be empty');
    const terms = fold(sent.query ?? '')
      .split(/\s/u)
      .filter((term) => term !== '');
    const found = this.bookmarks.filter(({ url, title, comment, tags }) => {
      const texts = [url, decodeLetters(url), title, comment].map(fold);
      const hasTag = sent.tag === undefined || tags.some(({ name }) => fold(name) === fold(trim(sent.tag!)));
      const isUnder = path === undefined || tags.some(({ name }) => `${fold(name)}/`.startsWith(`${path}/`));
      return hasTag && isUnder && terms.every((term) => texts.some((text) => text.includes(term)));
    });
    const bookmarks = found.reverse().slice((page - 1) * per_page, page * per_page);
    const hasMore = page * per_page < found.length;
    return ok({ bookmarks, total: found.length, page, per_page, has_more: hasMore });
  }

  /** Returns the bookmarks after an id, in the order of ids: a page of the list or of a sync. */
  after(id: number, limit: number): { bookmarks: ModelBookmark[]; hasMore: boolean } {
    const later = this.bookmarks.filter((bookmark) => bookmark.id.value > id);
    return { bookmarks: later.slice(0, limit), hasMore: later.length > limit };
  }

  sync(cursor: number, limit: number, waits: boolean): Expected {
    const { bookmarks, hasMore } = this.after(cursor, limit);
    const next = bookmarks.at(-1)?.id ?? cursor;
    return ok({ bookmarks, cursor: next, has_more: hasMore, waited: waits && bookmarks.length === 0 });
  }

  export(): Expected {
    return ok({ bookmarks: this.bookmarks, exported_at: this.#newTime(), count: this.bookmarks.length });
  }

  listTags(): Expected {
    const count = (tag: ModelTag) => this.bookmarks.filter(({ tags }) => tags.includes(tag)).length;
    return ok({
      tags: this.tags.toSorted(byName).map((tag) => ({ ...tag, bookmark_count: count(tag) })),
    });
  }

  createTag(name: string): Expected {
    if (this.#findTag(name) !== undefined) return TAKEN;
    const [tag] = this.#findOrCreateTags([name]);
    return ok({ ...tag, created_at: this.#newTime() });
  }

  /** Returns the tag with an id or name, and with `withChildren` all tags below it. */
  #chooseTags(choice: number | string, withChildren: boolean): { path: string; tags: ModelTag[] } {
    const path =
      typeof choice === 'string' ? trim(choice) : this.tags.find(({ id }) => id.value === choice)?.name;
    if (path === undefined) return { path: '', tags: [] };
    const isBelow = (name: string) => withChildren && fold(name).startsWith(`${fold(path)}/`);
    return { path, tags: this.tags.filter(({ name }) => fold(name) === fold(path) || isBelow(name)) };
  }

  renameTag(choice: number | string, name: string, withChildren: boolean): Expected {
    const { path, tags } = this.#chooseTags(choice, withChildren);
    if (tags.length === 0) return fault(404, 'NOT_FOUND', 'the tag does not exist');
    const depth = path.split('/').length;
    const newPath = trim(name).normalize('NFC');
    const renamed = new Map(
      tags.map((tag) => [tag, [newPath, ...tag.name.split('/').slice(depth)].join('/')]),
    );
    const holders = [...renamed.values()].map((newName) => this.#findTag(newName));
    if (holders.some((holder) => holder !== undefined && !renamed.has(holder)))
      return withChildren ? fault(400, 'VALIDATION_ERROR') : TAKEN;
    for (const [each, newName] of renamed) each.name = newName;
    for (const bookmark of this.bookmarks) bookmark.tags.sort(byName);
    if (typeof choice === 'string') return ok({ name: newPath, renamed: tags.length });
    return ok({ ...tags.find(({ id }) => id.value === choice) });
  }

  deleteTag(choice: number | string, withChildren: boolean): Expected {
    const { tags } = this.#chooseTags(choice, withChildren);
    if (tags.length === 0) return fault(404, 'NOT_FOUND', 'the tag does not exist');
    this.tags = this.tags.filter((tag) => !tags.includes(tag));
    for (const bookmark of this.bookmarks) bookmark.tags = bookmark.tags.filter((tag) => !tags.includes(tag));
    return ok({ deleted: true });
  }

  mergeTags(id: number, intoId: number): Expected {
    if (id === intoId) return fault(400, 'VALIDATION_ERROR', 'into_id: expected another tag than id');
    const [gone, kept] = [id, intoId].map((each) => this.tags.find((tag) => tag.id.value === each));
    if (gone === undefined || kept === undefined) return fault(404, 'NOT_FOUND', 'the tag does not exist');
    this.tags = this.tags.filter((tag) => tag !== gone);
    for (const bookmark of this.bookmarks.filter(({ tags }) => tags.includes(gone))) {
      const others = bookmark.tags.filter((tag) => tag !== gone && tag !== kept);
      bookmark.tags = [...others, kept].sort(byName);
    }
    const count = this.bookmarks.filter(({ tags }) => tags.includes(kept)).length;
    return ok({ ...kept, bookmark_count: count });
  }

  import(mode: 'merge' | 'replace', entries: ModelEntry[]): Expected {
    const errors = entries.flatMap(({ sent, error }, index) =>
      error === undefined
        ? []
        : [
            {
              index,
              url: (sent as { url?: string } | null)?.url ?? null,
              code: 'VALIDATION_ERROR',
              error,
            },
          ],
    );
    const valid = entries.filter(({ error }) => error === undefined);
    return mode === 'merge' ? this.#merge(valid, errors) : this.#replace(valid, errors);
  }

  #merge(valid: ModelEntry[], errors: object[]): Expected {
    const distinct = valid.filter(
      ({ url }, index) => valid.findIndex((earlier) => sameUrl(earlier.url!, url!)) === index,
    );
    const isNew = ({ url }: ModelEntry) => !this.bookmarks.some((bookmark) => sameUrl(bookmark.url, url!));
    const written = distinct.filter(isNew);
    if (this.bookmarks.length + written.length > this.cap) return LIMIT;
    this.#write(written, distinct);
    return ok({ imported: written.length, skipped: valid.length - written.length, errors });
  }

  #replace(valid: ModelEntry[], errors: { index: number; error: string }[]): Expected {
    const [first] = errors;
    if (first !== undefined) {
      const count = errors.length === 1 ? '1 entry is' : `${errors.length} entries are`;
      const rule = `bookmarks[${first.index}]: ${first.error}; ${count} invalid and nothing was changed`;
      return fault(400, 'VALIDATION_ERROR', rule);
    }
    if (valid.length > this.cap) return LIMIT;
    this.bookmarks = [];
    this.#write(valid, valid);
    return ok({ imported: valid.length, skipped: 0, errors: [] });
  }

  /**
   * Adds the bookmarks of `written`, with their tags. A new tag gets its spelling from the first entry of `distinct`
   * that has the tag.
   */
  #write(written: ModelEntry[], distinct: ModelEntry[]): void {
    const allNames = distinct.flatMap(({ tags }) => tags ?? []);
    const firstSpelling = (name: string) => allNames.find((other) => fold(trim(other)) === fold(trim(name)))!;
    const now = this.#newTime();
    for (const { url, title, comment, tags, created_at, updated_at } of written) {
      this.bookmarks.push({
        id: this.#newBookmarkId(),
        url: trim(url!),
        title: trim(title ?? ''),
        comment: trim(comment ?? ''),
        tags: this.#findOrCreateTags((tags ?? []).map(firstSpelling)),
        created_at: created_at ?? now,
        updated_at: updated_at ?? created_at ?? now,
      });
    }
  }

  /**
   * Returns the tags with these names, each once, in the order of their normalized names. Creates tags that do not
   * exist.
   */
  #findOrCreateTags(names: string[]): ModelTag[] {
    const found = new Set<ModelTag>();
    for (const name of names) {
      const known = this.#findTag(name);
      const tag = known ?? { id: newId(), name: trim(name).normalize('NFC') };
      if (known === undefined) this.tags.push(tag);
      found.add(tag);
    }
    return [...found].sort(byName);
  }

  #findTag(name: string): ModelTag | undefined {
    return this.tags.find((tag) => fold(tag.name) === fold(trim(name)));
  }

  #find(id: number): ModelBookmark | undefined {
    return this.bookmarks.find((bookmark) => bookmark.id.value === id);
  }

  /** Returns an id that a later response will define. It must be higher than all ids in earlier responses. */
  #newBookmarkId(): Id {
    return new Learned((value): value is number => {
      if (!Number.isSafeInteger(value) || (value as number) <= this.#lastId) return false;
      this.#lastId = value as number;
      return true;
    });
  }

  #newTime(): Learned<string> {
    return new Learned((value): value is string => {
      if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return false;
      return Math.abs(Date.parse(value) - Date.now()) < Date.now() - this.#startedAt + 10_000;
    });
  }
}

const newId = (): Id =>
  new Learned((value): value is number => Number.isSafeInteger(value) && Number(value) > 0);
