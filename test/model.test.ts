import assert from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { compare, type Expected, Model, type ModelEntry } from './support/model.ts';
import { type TestUser, useService } from './support/service.ts';

// Sends random commands in turn to two replicas that share a database. Every response must equal that of a simple model
// of the service.

const CAP = 24;
const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const NEVER_AN_ID = Number.MAX_SAFE_INTEGER;

const config = { freeBookmarkLimit: CAP, syncWaitSeconds: 0.02, importWaitSeconds: 20 };
const first = useService(config);
/** The first replica writes every import directly. The second replica stages each import. */
const replicas = [first, useService({ ...config, importInlineBytes: 0 }, { beside: first })];

/** Sends the account's requests to the replicas in turn. */
class Client {
  readonly #user: TestUser;
  #turn = 0;

  constructor(user: TestUser) {
    this.#user = user;
  }

  async post(path: string, body: unknown) {
    const replica = replicas[this.#turn++ % replicas.length]!;
    return replica.post(path, body, { token: this.#user.token });
  }

  async expect(path: string, body: unknown, expected: Expected): Promise<void> {
    const { status, body: response } = await this.post(path, body);
    const context = `${path} ${JSON.stringify(body)} responses ${JSON.stringify(response)}`;
    assert.equal(status, expected.status, context);
    if ('body' in expected) compare(response, expected.body, path);
    else {
      assert.equal(response.code, expected.code, context);
      if (expected.error !== undefined) assert.equal(response.error, expected.error, context);
    }
  }

  /** Checks the whole list, page by page. */
  async expectList(model: Model, limit: number): Promise<void> {
    let afterId = 0;
    for (let cursor: string | undefined; ; ) {
      const { body } = await this.post('/bookmarks/list', { limit, ...(cursor !== undefined && { cursor }) });
      // Only here does the model learn the ids of imported bookmarks. It needs the ids, because later commands choose a
      // bookmark by its position and send its id.
      const place = model.bookmarks.findIndex(({ id }) => isLearned(id) && id.value === afterId) + 1;
      const page = model.bookmarks.slice(place, place + limit);
      const hasMore = place + limit < model.bookmarks.length;
      const next = hasMore ? { next_cursor: body.next_cursor } : {};
      compare(body, { bookmarks: page, has_more: hasMore, ...next }, '/bookmarks/list');
      if (!hasMore) return;
      cursor = body.next_cursor;
      afterId = page.at(-1)!.id.value;
    }
  }
}

/** Returns whether the model knows this id already. Reading an unknown id throws. */
function isLearned(id: { readonly value: number }): boolean {
  try {
    return id.value > 0;
  } catch {
    return false;
  }
}

class Command implements fc.AsyncCommand<Model, Client> {
  readonly #text: string;
  readonly #run: (model: Model, client: Client) => Promise<void>;

  constructor(name: string, sent: unknown, run: (model: Model, client: Client) => Promise<void>) {
    this.#text = `${name} ${JSON.stringify(sent)}`;
    this.#run = run;
  }

  check = () => true;
  run = (model: Model, client: Client) => this.#run(model, client);
  toString = () => this.#text;
}

// Letters that are equal only after normalization, and characters that SQL, LIKE, arrays or JSON could misread.
const FRAGMENTS =
  'a A é e\u0301 É ß ẞ İ ı i\u0307 Σ ς σ ΟΔΟΣ οδος Å \u212b K k ﬁ Ǆ ǆ % _ \\ \' " { } , NULL null [] 😀 👩‍👩‍👧 שלום \u200f \u202e العربية -- $1 ;'
    .split(' ')
    .concat(' ', '\t', '\n', '\r\n', '\u00a0', '\u3000', '\ufeff', '\u2028', '\u0085', '\u0001', '\u007f');

const fragment = fc.constantFrom(...FRAGMENTS);
const text = fc.array(fragment, { maxLength: 4 }).map((parts) => parts.join(''));
const tagName = fc
  .tuple(fc.array(fragment, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '/'))
  .map(([parts, between]) => parts.join(between))
  .filter((name) => name.trim() !== '');
const tagNames = fc.array(tagName, { maxLength: 4 });
const url = fc
  .tuple(
    fc.constantFrom(
      'http://a.example',
      'HTTP://A.example:80/',
      '  http://a.example/\u00a0',
      'https://a.example:443/x',
      'https://a.example/x',
      'https://a.example/X',
      'http://bücher.example/',
      'http://xn--bcher-kva.example/',
      'https://a.example/%7Euser/é%',
      'https://a.example/~user/é%25',
      'http://user:pw@[::1]:8080/"\'\\{}',
      'http://1.1/',
      'http://1.0.0.1/',
    ),
    fc.constantFrom('', '', '?', '?q=_%25&r', '#', '#frag'),
  )
  .map(([start, end]) => (end === '' ? start : start.trim() + end));
const place = fc.nat({ max: 40 });

const fields = fc.record({ url, title: text, comment: text, tags: tagNames }, { requiredKeys: [] });

/** Pairs of a time as a client sends it and the time that the service stores. */
const times = fc.constantFrom(
  ['2020-02-29T23:59:59Z', '2020-02-29T23:59:59.000Z'],
  ['2020-02-29T23:59:59.9999+05:30', '2020-02-29T18:29:59.999Z'],
  ['0001-01-01t00:00:00.1-00:01', '0001-01-01T00:01:00.100Z'],
  ['9999-12-31T23:59:59.999z', '9999-12-31T23:59:59.999Z'],
  ['1969-12-31T23:59:59.9990000001-14:00', '1970-01-01T13:59:59.999Z'],
);

const validEntry = fc
  .record(
    {
      url,
      title: text,
      comment: text,
      tags: fc.array(fc.tuple(tagName, fc.boolean()), { maxLength: 3 }),
      created_at: times,
      updated_at: times,
      id: fc.integer(),
      extra: fc.jsonValue({ maxDepth: 1 }),
    },
    { requiredKeys: ['url'] },
  )
  .map(({ tags, created_at, updated_at, id, extra, ...rest }): ModelEntry => {
    const sent = {
      ...rest,
      ...(tags && { tags: tags.map(([name, isObject]) => (isObject ? { id: 7, name } : name)) }),
      ...(created_at && { created_at: created_at[0] }),
      ...(updated_at && { updated_at: updated_at[0] }),
      ...(id !== undefined && { id }),
      ...(extra !== undefined && { extra }),
    };
    return {
      ...rest,
      sent,
      ...(tags && { tags: tags.map(([name]) => name) }),
      ...(created_at && { created_at: created_at[1]! }),
      ...(updated_at && { updated_at: updated_at[1]! }),
    };
  });

const NO_TIME = 'expected an ISO 8601 time of the years 0001 to 9999';
const u = 'http://never.example/';
const invalidEntry = fc.constantFrom<ModelEntry[]>(
  { sent: 5, error: 'expected an object' },
  { sent: null, error: 'expected an object' },
  { sent: {}, error: 'url: is required' },
  { sent: { url: null }, error: 'url: is required' },
  { sent: { url: 'ftp://x/' }, error: 'url: expected an http or https url' },
  { sent: { url: '/relative' }, error: 'url: expected an absolute url' },
  { sent: { url: u, title: 7 }, error: 'title: expected a string' },
  { sent: { url: u, comment: 'a\u0000' }, error: 'comment: may not contain U+0000 or a lone surrogate' },
  { sent: { url: u, tags: [''] }, error: 'tags[0]: may not be empty' },
  { sent: { url: u, tags: ['ok', { id: 1 }] }, error: 'tags[1]: expected a string' },
  { sent: { url: u, created_at: '2021-02-29T00:00:00Z' }, error: `created_at: ${NO_TIME}` },
  { sent: { url: u, updated_at: '0001-01-01T00:00:00+00:01' }, error: `updated_at: ${NO_TIME}` },
);

const entries = fc.array(
  fc.oneof({ weight: 12, arbitrary: validEntry }, { weight: 1, arbitrary: invalidEntry }),
  { maxLength: 14 },
);

/** Returns the id at a position. If the position is beyond the last object, returns an id that does not exist. */
const idAt = (list: readonly { id: { value: number } }[], index: number): number =>
  list[index]?.id.value ?? NEVER_AN_ID;

const newBookmark = fc.record(
  {
    url,
    title: text,
    comment: text,
    tags: tagNames,
    created_at: times,
    on_duplicate: fc.constantFrom('add', 'return', 'error'),
  },
  { requiredKeys: ['url'] },
);

const add = newBookmark.map(({ created_at: [given, stored] = [] as string[], ...rest }) => {
  const sent = { ...rest, ...(given && { created_at: given }) };
  return new Command('add', sent, (model, client) =>
    client.expect('/bookmarks/add', sent, model.add({ ...rest, ...(stored && { created_at: stored }) })),
  );
});

const edit = fc.tuple(place, fields).map(
  ([index, sent]) =>
    new Command('edit', { index, ...sent }, (model, client) => {
      const id = idAt(model.bookmarks, index);
      return client.expect('/bookmarks/edit', { id, ...sent }, model.edit(id, sent));
    }),
);

const remove = place.map(
  (index) =>
    new Command('delete', { index }, (model, client) => {
      const id = idAt(model.bookmarks, index);
      return client.expect('/bookmarks/delete', { id }, model.delete(id));
    }),
);

const places = fc.array(place, { minLength: 1, maxLength: 5 });

const editTags = fc
  .tuple(places, fc.record({ add_tags: tagNames, remove_tags: tagNames }, { requiredKeys: [] }))
  .map(
    ([indexes, sent]) =>
      new Command('edit tags', { indexes, ...sent }, async (model, client) => {
        const ids = indexes.map((index) => idAt(model.bookmarks, index));
        await client.expect('/bookmarks/edit', { ids, ...sent }, model.editTags(ids, sent));
        // The response to the edit contains neither the ids of new tags nor the times of the edit. The model learns
        // them here.
        await client.expect('/tags/list', {}, model.listTags());
        await client.expectList(model, 500);
      }),
  );

const removeSeveral = places.map(
  (indexes) =>
    new Command('delete several', { indexes }, (model, client) => {
      const ids = indexes.map((index) => idAt(model.bookmarks, index));
      return client.expect('/bookmarks/delete', { ids }, model.deleteSeveral(ids));
    }),
);

const search = fc
  .record(
    {
      query: fc.oneof(
        text,
        fc
          .tuple(place, fc.nat(8), fc.nat(8))
          .map(([index, from, length]) => ({ index, from, to: from + length })),
      ),
      tag: fc.oneof(tagName, place),
      tag_under: tagName,
      page: fc.integer({ min: 1, max: 4 }),
      per_page: fc.integer({ min: 1, max: 5 }),
    },
    { requiredKeys: [] },
  )
  .map(
    ({ query, tag, ...rest }) =>
      new Command('search', { query, tag, ...rest }, (model, client) => {
        const sent = {
          ...rest,
          ...(query !== undefined && { query: typeof query === 'string' ? query : cut(model, query) }),
          ...(tag !== undefined && {
            tag: typeof tag === 'string' ? tag : (model.tags[tag]?.name ?? 'no such tag'),
          }),
        };
        return client.expect('/bookmarks/search', sent, model.search(sent));
      }),
  );

/** Cuts a part out of a stored title or url, between whole code points. Returns the part in upper case. */
function cut(model: Model, { index, from, to }: { index: number; from: number; to: number }): string {
  const bookmark = model.bookmarks[index % Math.max(1, model.bookmarks.length)];
  const letters = Array.from(bookmark?.title || bookmark?.url || '');
  return letters.slice(from, to).join('').toUpperCase();
}

const list = fc
  .integer({ min: 1, max: 9 })
  .map((limit) => new Command('list', { limit }, (model, client) => client.expectList(model, limit)));

const sync = fc.record({ index: place, limit: fc.integer({ min: 1, max: 9 }), wait: fc.boolean() }).map(
  ({ index, limit, wait }) =>
    new Command('sync', { index, limit, wait }, (model, client) => {
      const cursor = index === 0 ? 0 : idAt(model.bookmarks, index - 1);
      return client.expect('/bookmarks/sync', { cursor, limit, wait }, model.sync(cursor, limit, wait));
    }),
);

const exportAll = fc
  .constant(null)
  .map(() => new Command('export', {}, (model, client) => client.expect('/export', {}, model.export())));

const importSome = fc.tuple(fc.constantFrom('merge', 'replace'), entries).map(
  ([mode, given]) =>
    new Command('import', { mode, bookmarks: given }, async (model, client) => {
      const sent = {
        bookmarks: given.map((entry) => entry.sent),
        ...(mode === 'replace' && { mode }),
      };
      await client.expect('/import', sent, model.import(mode, given));
      await client.expectList(model, 500);
    }),
);

const restore = fc.constant(null).map(
  () =>
    new Command('export and replace', {}, async (model, client) => {
      const { body } = await client.post('/export', {});
      const before = structuredClone(body.bookmarks);
      const given = model.bookmarks.map(({ tags, created_at, updated_at, id: _, ...bookmark }, index) => ({
        ...bookmark,
        sent: before[index],
        tags: tags.map(({ name }) => name),
        created_at: typeof created_at === 'string' ? created_at : created_at.value,
        updated_at: typeof updated_at === 'string' ? updated_at : updated_at.value,
      }));
      const sent = { bookmarks: body.bookmarks, mode: 'replace' };
      await client.expect('/import', sent, model.import('replace', given));
      await client.expectList(model, 500);
      const { body: after } = await client.post('/export', {});
      // biome-ignore lint/suspicious/noExplicitAny: responses of the service
      const withoutId = ({ id: _, ...bookmark }: any) => bookmark;
      assert.deepEqual(after.bookmarks.map(withoutId), before.map(withoutId));
    }),
);

const listTags = fc
  .constant(null)
  .map(
    () => new Command('tags/list', {}, (model, client) => client.expect('/tags/list', {}, model.listTags())),
  );

const createTag = tagName.map(
  (name) =>
    new Command('tags/create', { name }, (model, client) =>
      client.expect('/tags/create', { name }, model.createTag(name)),
    ),
);

const renameTag = fc.tuple(place, tagName, fc.boolean()).map(
  ([index, name, with_children]) =>
    new Command('tags/update', { index, name, with_children }, (model, client) => {
      const id = idAt(model.tags, index);
      const sent = { id, name, with_children };
      return client.expect('/tags/update', sent, model.renameTag(id, name, with_children));
    }),
);

const renamePath = fc.tuple(tagName, tagName).map(
  ([path, name]) =>
    new Command('tags/update', { path, name }, (model, client) => {
      const sent = { path, name, with_children: true };
      return client.expect('/tags/update', sent, model.renameTag(path, name, true));
    }),
);

const deleteTag = fc.tuple(place, fc.boolean()).map(
  ([index, with_children]) =>
    new Command('tags/delete', { index, with_children }, (model, client) => {
      const id = idAt(model.tags, index);
      return client.expect('/tags/delete', { id, with_children }, model.deleteTag(id, with_children));
    }),
);

const deletePath = tagName.map(
  (path) =>
    new Command('tags/delete', { path }, (model, client) =>
      client.expect('/tags/delete', { path, with_children: true }, model.deleteTag(path, true)),
    ),
);

const mergeTags = fc.tuple(place, place).map(
  ([from, into]) =>
    new Command('tags/merge', { from, into }, (model, client) => {
      const [id, intoId] = [idAt(model.tags, from % 12), idAt(model.tags, into % 12)];
      return client.expect('/tags/merge', { id, into_id: intoId }, model.mergeTags(id, intoId));
    }),
);

const commands = fc.commands(
  [add, add, edit, remove, search, search, list, sync, exportAll, importSome, restore].concat(
    listTags,
    createTag,
    renameTag,
    renamePath,
    deleteTag,
    deletePath,
    editTags,
    removeSeveral,
    mergeTags,
  ),
  { maxCommands: 60, size: 'max' },
);

test('every response of two replicas equals that of a simple model of the contract', async () => {
  console.log(`model: TEST_SEED=${seed}`);
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const user = await first.user();
      await fc.asyncModelRun(() => ({ model: new Model(CAP), real: new Client(user) }), sequence);
    }),
    { seed, numRuns: 40 },
  );
  expect(await findFaults(first.database.url)).toEqual([]);
});

test("a stored time has milliseconds, whatever the microseconds of the database's clock", async () => {
  const times = ['.1299990', '.129999', '.999999', '.000999', '.1', ''].map(
    (fraction) => `2026-01-31T12:00:59${fraction}Z`,
  );
  const rows = await runOn<{ time: string }>(
    first.database.url,
    `select render_time(time) as time from unnest('{${times}}'::timestamptz[]) as times (time)`,
  );
  const fractions = rows.map(({ time }) => time.replace('2026-01-31T12:00:59', ''));
  expect(fractions).toEqual(['.129Z', '.129Z', '.999Z', '.000Z', '.100Z', '.000Z']);
});
