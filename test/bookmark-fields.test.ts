import { describe, expect, test } from 'vitest';
import { BookmarkClient } from '../src/client/bookmark-client.ts';
import { MemoryStore } from '../src/client/memory-store.ts';
import { BOOKMARK_FIELDS, FIELD_DEFAULTS, FIELD_NAMES, namesGivenTo } from '../src/domain/bookmark-fields.ts';
import { beginSmallImport } from '../src/store/import-leases.ts';
import { sampleOf, samplesFor } from './support/bookmark-samples.ts';
import { useService } from './support/service.ts';
import { type ReadableStore, useStores } from './support/stores.ts';

// Every field in `BOOKMARK_FIELDS` is accepted, stored, shown and compared as its description says.

const service = useService();
const { stores } = useStores();

type Values = Record<string, unknown>;

/** Returns the bookmark as a request contains it: with the names of its tags. */
const asGiven = (bookmark: Values): Values => ({
  ...bookmark,
  tags: (bookmark.tags as { name: string }[]).map(({ name }) => name).sort(),
});

const sorted = (values: Values): Values =>
  'tags' in values ? { ...values, tags: [...(values.tags as string[])].sort() } : values;

type User = Awaited<ReturnType<typeof service.user>>;

/** Returns the user's only bookmark in the response of each endpoint that shows bookmarks. */
async function showEverywhere(user: User): Promise<Values[]> {
  const paths = ['/bookmarks/list', '/bookmarks/search', '/bookmarks/sync', '/bookmarks/changes', '/export'];
  const pages = await Promise.all(paths.map((path) => user.post(path)));
  pages.push(await user.post('/bookmarks/get', { id: pages[0]!.body.bookmarks[0].id }));
  return pages.map(({ body }) => {
    expect(body.bookmarks).toHaveLength(1);
    return body.bookmarks[0];
  });
}

async function expectShown(user: User, expected: Values): Promise<void> {
  for (const bookmark of await showEverywhere(user)) {
    expect(Object.keys(bookmark)).toEqual(['id', ...FIELD_NAMES]);
    expect(asGiven(bookmark)).toMatchObject(sorted(expected));
  }
  for (const name of FIELD_NAMES) {
    if (!('isSearched' in BOOKMARK_FIELDS[name])) continue;
    const found = await user.post('/bookmarks/search', { query: expected[name] });
    expect(found.body.total, `a search for the ${name}`).toBe(1);
  }
}

describe('the fields of a request', () => {
  test('are stored, found and shown after an add', async () => {
    const user = await service.user();
    const given = samplesFor('add', 1);
    const { body } = await user.post('/bookmarks/add', given);
    expect(asGiven(body)).toMatchObject(sorted(given));
    await expectShown(user, given);
  });

  test.each(namesGivenTo('edit'))('an edit of %s is stored, found and shown', async (name) => {
    const user = await service.user();
    const { created_at: _, ...before } = samplesFor('add', 1);
    const { body } = await user.post('/bookmarks/add', before);
    const changed = sampleOf(name, 2);
    const edited = await user.post('/bookmarks/edit', { id: body.id, [name]: changed });
    expect(asGiven(edited.body)).toMatchObject(sorted({ ...before, [name]: changed }));
    expect(Object.keys(edited.body)).toEqual(['id', ...FIELD_NAMES].filter((each) => each !== 'created_at'));
    await expectShown(user, { ...before, [name]: changed });
  });

  test.each(['merge', 'replace'])(
    'are stored, found and shown after an import with mode %s',
    async (mode) => {
      const user = await service.user();
      const entry = samplesFor('import', 3);
      const { body } = await user.post('/import', { mode, bookmarks: [entry] });
      expect(body).toEqual({ imported: 1, skipped: 0, errors: [] });
      await expectShown(user, entry);
      // An export can be imported again. The url with spaces fails the fast check of entries, so the slower check is
      // tested too.
      const [exported] = (await user.post('/export')).body.bookmarks;
      await user.post('/import', { mode: 'replace', bookmarks: [exported] });
      await expectShown(user, entry);
      await user.post('/import', { mode: 'replace', bookmarks: [{ ...exported, url: ` ${entry.url} ` }] });
      await expectShown(user, entry);
    },
  );
});

describe.each(stores)('with a local copy %s', (_, open, test) => {
  test('every field survives an add, edits, the trash, a restore, a replace, an export and an import', async () => {
    const user = await service.user();
    const store = await open();
    const shownFirst = async () => (await user.post('/bookmarks/list')).body.bookmarks[0];
    const expectKept = async (expected: Values) => {
      await expectShown(user, expected);
      await applyChanges(user, store);
      expect([...(await store.bookmarks())]).toEqual([await shownFirst()]);
    };
    const added = samplesFor('add', 1);
    await user.post('/bookmarks/add', added);
    await expectKept(added);
    const { id } = await shownFirst();
    const edit = samplesFor('edit', 2);
    await user.post('/bookmarks/edit', { id, ...edit });
    await expectKept({ ...added, ...edit });

    // The values of an import are the most complete, because an import sets every field.
    await user.post('/bookmarks/delete', { id });
    const entry = samplesFor('import', 3);
    await user.post('/import', { bookmarks: [entry] });
    await expectKept(entry);
    const imported = await shownFirst();
    // A deletion and an import in replace mode use different statements to move bookmarks to the trash.
    await user.post('/bookmarks/delete', { id: imported.id, trash: true });
    await restoreOnly(user, imported);
    await expectKept(entry);
    const restored = await shownFirst();
    await user.post('/import', { mode: 'replace', bookmarks: [] });
    await restoreOnly(user, restored);
    await expectKept(entry);

    const { body: exported } = await user.post('/export');
    await user.post('/import', { mode: 'replace', bookmarks: exported.bookmarks });
    await expectKept(entry);
  });
});

/** Applies all changes since the last call to a store. */
async function applyChanges(user: User, store: ReadableStore): Promise<void> {
  const after = await store.readCursor();
  const { body } = await user.post('/bookmarks/changes', { ...(after !== undefined && { cursor: after }) });
  expect(body.has_more).toBe(false);
  await store.apply(body, after);
}

/** Restores the only bookmark in the trash. Expects that the trash shows the bookmark as it was. */
async function restoreOnly(user: User, bookmark: Values): Promise<void> {
  const { body } = await user.post('/trash/list');
  expect(body.bookmarks).toEqual([{ ...bookmark, deleted_at: expect.any(String) }]);
  expect(Object.keys(body.bookmarks[0])).toEqual(['id', ...FIELD_NAMES, 'deleted_at']);
  await user.post('/trash/restore', { ids: [bookmark.id] });
}

test('an omitted field has its default', async () => {
  const [adding, importing] = [await service.user(), await service.user()];
  await adding.post('/bookmarks/add', { url: 'https://example.org/' });
  await importing.post('/import', { bookmarks: [{ url: 'https://example.org/' }] });
  for (const user of [adding, importing]) {
    for (const bookmark of await showEverywhere(user)) expect(bookmark).toMatchObject(FIELD_DEFAULTS);
  }
});

test('a field that is given with its default value has that value', async () => {
  const given = { url: 'https://example.org/', ...FIELD_DEFAULTS };
  const [adding, importing] = [await service.user(), await service.user()];
  expect((await adding.post('/bookmarks/add', given)).body).toMatchObject(given);
  expect((await importing.post('/import', { bookmarks: [given] })).body.imported).toBe(1);
  for (const user of [adding, importing]) await expectShown(user, given);
});

test('a local copy sends every field of an add and of an edit, and keeps every field', async () => {
  const user = await service.user();
  const client = new BookmarkClient({ baseUrl: `${service.origin}/api/v1`, token: user.token });
  const collection = client.collection(new MemoryStore());
  const added = samplesFor('add', 1);
  const { id } = await collection.add(added as { url: string });
  expect(asGiven({ ...(await collection.get(id)) })).toMatchObject(sorted(added));
  expect(await collection.sync()).toEqual([]);
  await expectShown(user, added);
  for (const name of namesGivenTo('edit')) {
    const changed = name === 'url' ? sampleOf(name, 2) : FIELD_DEFAULTS[name];
    await collection.edit(id, { [name]: changed });
    expect(asGiven({ ...(await collection.get(id)) })).toMatchObject({ [name]: changed });
    expect(await collection.sync()).toEqual([]);
    const [shown] = (await user.post('/bookmarks/list')).body.bookmarks;
    expect(asGiven(shown)).toMatchObject({ [name]: changed });
    expect(await collection.list()).toEqual([shown]);
  }
});

test('a field that a replica of an older release does not know stays unchanged or has its default', async () => {
  const user = await service.user();
  const { sql } = service.context.database;
  const known = { url: 'https://example.org/', url_key: crypto.randomUUID(), search_text: 'x' };
  const [token] = await sql<
    { hash: Buffer }[]
  >`select token_hash as hash from tokens where user_id = ${user.id}`;
  const [added] = await sql<{ outcome: string | null; bookmark: string }[]>`
    select * from add_bookmark(
      ${user.id}, ${token!.hash}, ${JSON.stringify(known)}::text::jsonb, '{}', '{}', 100, 100, null, null
    )`;
  expect(added!.outcome).toBeNull();
  for (const bookmark of await showEverywhere(user)) expect(bookmark).toMatchObject(FIELD_DEFAULTS);

  const { id } = JSON.parse(added!.bookmark);
  const edit = samplesFor('edit', 1);
  await user.post('/bookmarks/edit', { id, ...edit });
  const [edited] = await sql<{ outcome: string | null }[]>`
    select outcome from edit_bookmark(
      ${user.id}, ${token!.hash}, ${id}, null, '{"host":"example.org"}', null, null, 100, null, null
    )`;
  expect(edited!.outcome).toBeNull();
  await expectShown(user, edit);

  const lease = { userId: user.id, id: crypto.randomUUID(), leaseId: crypto.randomUUID() };
  await beginSmallImport(service.context.database, { userId: user.id, hash: token!.hash }, lease, undefined);
  const [imported] = await sql<{ outcome: string | null }[]>`
    select * from import_bookmarks(
      ${user.id}, ${lease.id}, ${lease.leaseId}, true,
      0, array[${crypto.randomUUID()}::uuid], '{""}', ${JSON.stringify([known])}, '',
      '{}', '{}', 0, 100, 100, 100
    )`;
  expect(imported!.outcome).toBeNull();
  for (const bookmark of await showEverywhere(user)) expect(bookmark).toMatchObject(FIELD_DEFAULTS);
});

test('a field that was described after a bookmark was moved to the trash has its default there', async () => {
  const user = await service.user();
  const { id } = (await user.post('/bookmarks/add', samplesFor('add', 1))).body;
  await user.post('/bookmarks/delete', { id, trash: true });
  const { tags: _, ...columns } = FIELD_DEFAULTS;
  await service.context.database.sql`
    update trash set bookmark = bookmark - ${Object.keys(columns)}::text[] where user_id = ${user.id} and id = ${id}`;
  expect((await user.post('/trash/list')).body.bookmarks).toMatchObject([columns]);
  expect((await user.post('/trash/restore', { ids: [id] })).status).toBe(200);
  for (const bookmark of await showEverywhere(user)) expect(bookmark).toMatchObject(columns);
});

test('the API reference names every field where a request may contain it and where a response shows it', async () => {
  const response = await fetch(`${service.origin}/openapi.json`);
  const { paths, components } = (await response.json()) as Record<string, Record<string, Values>>;
  const bodyOf = (path: string) => {
    // biome-ignore lint/suspicious/noExplicitAny: the document is read from outside
    const { $ref } = (paths as any)[path].post.requestBody.content['application/json'].schema;
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return (components as any).schemas[$ref.split('/').at(-1)].properties;
  };
  const entry = bodyOf('/import').bookmarks.items.properties;
  expect(Object.keys(bodyOf('/bookmarks/add'))).toEqual([...namesGivenTo('add'), 'on_duplicate']);
  expect(Object.keys(bodyOf('/bookmarks/edit'))).toEqual(
    expect.arrayContaining(['id', ...namesGivenTo('edit')]),
  );
  expect(Object.keys(entry)).toEqual(namesGivenTo('import'));
  // biome-ignore lint/suspicious/noExplicitAny: as above
  expect(Object.keys((components as any).schemas.Bookmark.properties)).toEqual(['id', ...FIELD_NAMES]);
});
