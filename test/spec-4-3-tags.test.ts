import { beforeEach, describe, expect, test } from 'vitest';
import { type TestUser, useService } from './support/service.ts';

// Sections 4.3 and 2.3 of docs/contract.md and decision 12: tags and their names.

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user();
});

const URL = 'https://example.org/';

interface ListedTag {
  id: number;
  name: string;
  bookmark_count: number;
}

const list = async (owner = user): Promise<ListedTag[]> => (await owner.post('/tags/list')).body.tags;
const listNames = async () => (await list()).map(({ name }) => name);
const create = (name: string) => user.post('/tags/create', { name });
const add = async (tags: string[]) => (await user.post('/bookmarks/add', { url: URL, tags })).body;
const tagsOf = async (id: number): Promise<string[]> =>
  (await user.post('/bookmarks/sync', { cursor: id - 1, limit: 1 })).body.bookmarks[0].tags.map(
    ({ name }: ListedTag) => name,
  );

describe('/tags/list', () => {
  test('is empty for a new account', async () => {
    expect((await user.post('/tags/list')).body).toEqual({ tags: [] });
  });

  test('returns id, name and the number of bookmarks of each tag', async () => {
    await create('unused');
    await add(['a', 'b']);
    const { id } = await add(['b']);
    expect(await list()).toEqual([
      { id: expect.any(Number), name: 'a', bookmark_count: 1 },
      { id: expect.any(Number), name: 'b', bookmark_count: 2 },
      { id: expect.any(Number), name: 'unused', bookmark_count: 0 },
    ]);
    await user.post('/bookmarks/edit', { id, tags: ['a', 'a'] });
    expect((await list()).map((tag) => tag.bookmark_count)).toEqual([2, 1, 0]);
    await user.post('/bookmarks/delete', { id });
    expect((await list()).map((tag) => tag.bookmark_count)).toEqual([1, 1, 0]);
  });

  test('sorts tags by the code points of their normalized names, like the tags of bookmarks', async () => {
    const sorted = [
      '1',
      '10',
      '2',
      'A',
      'b',
      'C',
      'Zebra',
      '_',
      'ähre',
      'éa',
      'Ω',
      '字',
      '\ue000',
      '～',
      '\ufffd',
      '\u{10000}',
      '😀',
      '😀a',
      '\u{10fffd}',
    ];
    const byCodePoint = [...sorted].sort((a, b) =>
      Buffer.compare(Buffer.from(a.toLowerCase()), Buffer.from(b.toLowerCase())),
    );
    for (const name of sorted.toReversed()) await create(name);
    expect(await listNames()).toEqual(byCodePoint);
    const { id, tags } = await add(sorted.toReversed());
    expect(tags.map(({ name }: ListedTag) => name)).toEqual(byCodePoint);
    expect(await tagsOf(id)).toEqual(byCodePoint);
    await user.post('/bookmarks/edit', { id, tags: sorted });
    expect(await tagsOf(id)).toEqual(byCodePoint);
    await user.post('/import', { bookmarks: [{ url: `${URL}i`, tags: sorted.toReversed() }] });
    expect(await tagsOf(id + 1)).toEqual(byCodePoint);
  });

  test.each(['add', 'return'])(
    'the tags of an add are in the same order if half of its 100 tags are new: %s',
    async (on_duplicate) => {
      // Some of these names are prefixes of others. Some characters are surrogate pairs in UTF-16, so the order by code
      // units differs from the order by code points.
      const names = Array.from({ length: 100 }, (_, n) =>
        String.fromCodePoint(0xfff0 + ((n * 37) % 32))
          .repeat(1 + (n % 7))
          .concat(`${n}`),
      );
      for (const name of names.filter((_, n) => n % 2 === 0)) await create(name);
      const response = await user.post('/bookmarks/add', { url: URL, tags: names, on_duplicate });
      const listed = await list();
      expect(listed).toHaveLength(100);
      expect(response.body.tags).toEqual(listed.map(({ id, name }) => ({ id, name })));
      expect(listed.every((tag) => tag.bookmark_count === 1)).toBe(true);
    },
  );
});

describe('/tags/create', () => {
  test('returns id, name and created_at', async () => {
    const { status, body } = await create(' Reading list ');
    expect(status).toBe(200);
    expect(body).toEqual({ id: expect.any(Number), name: 'Reading list', created_at: expect.any(String) });
    expect(await list()).toEqual([{ id: body.id, name: 'Reading list', bookmark_count: 0 }]);
  });

  test.each([
    ['the same name', 'Straße', 'Straße'],
    ['another case', 'Reading', 'rEADING'],
    ['another case beyond ASCII', 'ÄÖÉ', 'äöé'],
    ['outer white space', 'a b', '\u3000a b\t'],
    ['the other normal form', 'é', 'e\u0301'],
    ['the other normal form in another case', 'É', 'e\u0301'],
    ['a final sigma', 'ΟΔΟΣ', 'οδος'],
    ['a sigma inside', 'οδοσ', 'οδος'],
    ['a dotted capital', 'İ', 'i\u0307'],
    ['a dotted capital and a plain letter', 'i', 'İ'],
    ['a character that NFC replaces', '\u212a', 'K'],
    ['a letter that is composed only in lower case', 'J\u030c', '\u01f0'],
  ])('an existing name is a VALIDATION_ERROR: %s', async (_, one, other) => {
    expect((await create(one)).status).toBe(200);
    expect(await create(other)).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_ERROR', error: 'name: another tag has this name' },
    });
    const { tags } = await add([other]);
    expect(tags).toEqual([{ id: expect.any(Number), name: one.normalize('NFC') }]);
    expect(await list()).toHaveLength(1);
  });

  test.each([
    ['a', 'á'],
    ['a b', 'a  b'],
    ['i', 'ı'],
    ['ss', 'ß'],
    ['a', 'ａ'],
    ['a', 'a\u200b'],
    ['%', '_'],
  ])('%j and %j are different names', async (one, other) => {
    expect((await create(one)).status).toBe(200);
    expect((await create(other)).status).toBe(200);
  });

  test('names are trimmed and normalized to NFC', async () => {
    expect((await create('\ufeff cafe\u0301 ')).body.name).toBe('caf\u00e9');
    expect(await listNames()).toEqual(['caf\u00e9']);
  });

  test('names are unique for each user, not globally', async () => {
    const other = await service.user();
    await create('shared');
    expect((await other.post('/tags/create', { name: 'shared' })).status).toBe(200);
  });

  test('a tag keeps the case that was given first', async () => {
    await create('First');
    await add(['FIRST']);
    await user.post('/import', { bookmarks: [{ url: `${URL}i`, tags: ['fIRST'] }] });
    expect(await list()).toMatchObject([{ name: 'First', bookmark_count: 2 }]);
  });
});

describe('/tags/update', () => {
  test('renames the tag in all its bookmarks, and sorts it by its new name', async () => {
    const { id, tags } = await add(['a', 'm']);
    const { body } = await user.post('/tags/update', { id: tags[0].id, name: ' Zed ' });
    expect(body).toEqual({ id: tags[0].id, name: 'Zed' });
    expect(await tagsOf(id)).toEqual(['m', 'Zed']);
    expect(await listNames()).toEqual(['m', 'Zed']);
    expect((await user.post('/bookmarks/search', { tag: 'zed' })).body.total).toBe(1);
    expect((await user.post('/bookmarks/search', { tag: 'a' })).body.total).toBe(0);
  });

  test('returns a VALIDATION_ERROR for the name of another tag, ignoring case, and changes nothing', async () => {
    const { id, tags } = await add(['one', 'Other']);
    for (const name of ['Other', 'OTHER', ' other ']) {
      expect(await user.post('/tags/update', { id: tags[0].id, name })).toMatchObject({
        status: 400,
        body: { code: 'VALIDATION_ERROR', error: 'name: another tag has this name' },
      });
    }
    expect(await tagsOf(id)).toEqual(['one', 'Other']);
  });

  test('a change of case only is a rename, and so is the same name', async () => {
    const { id, tags } = await add(['case']);
    for (const name of ['CASE', 'CASE', 'Case']) {
      expect((await user.post('/tags/update', { id: tags[0].id, name })).body.name).toBe(name);
      expect(await tagsOf(id)).toEqual([name]);
    }
  });

  test('frees the old name', async () => {
    const { body } = await create('old');
    await user.post('/tags/update', { id: body.id, name: 'new' });
    expect((await create('old')).status).toBe(200);
    expect((await create('New')).status).toBe(400);
  });

  test('an unknown id is NOT_FOUND, even with a name that is in use', async () => {
    await create('taken');
    const response = await user.post('/tags/update', { id: Number.MAX_SAFE_INTEGER, name: 'taken' });
    expect(response.body.code).toBe('NOT_FOUND');
  });
});

describe('/tags/delete', () => {
  test('removes the tag from all bookmarks, and keeps the bookmarks', async () => {
    const one = await add(['gone', 'kept']);
    const other = await add(['gone']);
    const gone = one.tags[0];
    expect((await user.post('/tags/delete', { id: gone.id })).body).toEqual({ deleted: true });
    expect(await tagsOf(one.id)).toEqual(['kept']);
    expect(await tagsOf(other.id)).toEqual([]);
    expect(await list()).toMatchObject([{ name: 'kept', bookmark_count: 1 }]);
    expect((await user.post('/bookmarks/search', { tag: 'gone' })).body.total).toBe(0);
    expect((await user.post('/tags/delete', { id: gone.id })).body.code).toBe('NOT_FOUND');
  });

  test('the name can be used again, with another id', async () => {
    const { body } = await create('again');
    await user.post('/tags/delete', { id: body.id });
    const second = await create('AGAIN');
    expect(second.body).toMatchObject({ name: 'AGAIN' });
    expect(second.body.id).toBeGreaterThan(body.id);
  });
});

describe('/tags/merge', () => {
  const merge = (id: number, into_id: number, owner = user) => owner.post('/tags/merge', { id, into_id });

  test('replaces the tag by the other one in all bookmarks, without duplicates, and deletes it', async () => {
    const both = await add(['gone', 'Kept', 'a']);
    const one = await add(['gone', 'z']);
    const none = await add(['Kept']);
    const [, gone, kept] = both.tags;
    const { body } = await merge(gone.id, kept.id);
    expect(body).toEqual({ id: kept.id, name: 'Kept', bookmark_count: 3 });
    expect(await tagsOf(both.id)).toEqual(['a', 'Kept']);
    expect(await tagsOf(one.id)).toEqual(['Kept', 'z']);
    expect(await tagsOf(none.id)).toEqual(['Kept']);
    expect(await listNames()).toEqual(['a', 'Kept', 'z']);
    expect((await user.post('/bookmarks/search', { tag: 'gone' })).body.total).toBe(0);
    expect((await user.post('/bookmarks/search', { tag: 'kept' })).body.total).toBe(3);
    expect((await merge(gone.id, kept.id)).body.code).toBe('NOT_FOUND');
  });

  test('does not change updated_at, and makes room for another tag', async () => {
    const { id, tags, updated_at } = await add(['one', 'two']);
    await merge(tags[0].id, tags[1].id);
    const { bookmarks } = (await user.post('/bookmarks/get', { id })).body;
    expect(bookmarks[0]).toMatchObject({ updated_at, tags: [{ name: 'two' }] });
    const { sql } = service.context.database;
    const [account] = await sql`
      select tag_count, (select count(*) from tags where user_id = ${user.id}) as there
      from accounts where user_id = ${user.id}`;
    expect(account!.tag_count).toBe(Number(account!.there));
  });

  test('shows a follower of changes each bookmark that got the other tag, and no others', async () => {
    const [both, one] = [await add(['gone', 'kept']), await add(['gone'])];
    await add(['kept']);
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const [gone, kept] = both.tags;
    await merge(gone.id, kept.id);
    const { body } = await user.post('/bookmarks/changes', { cursor });
    expect(body).toMatchObject({ tags: [], deleted: [], deleted_tags: [gone.id], has_more: false });
    expect(body.bookmarks).toEqual([{ ...one, tags: [kept] }]);
  });

  test('returns a VALIDATION_ERROR for a merge into itself, and NOT_FOUND for an unknown tag, and changes nothing', async () => {
    const { id, tags } = await add(['kept']);
    const stranger = await service.user();
    const theirs = (await stranger.post('/tags/create', { name: 'theirs' })).body;
    expect(await merge(tags[0].id, tags[0].id)).toMatchObject({
      status: 400,
      body: { code: 'VALIDATION_ERROR', error: 'into_id: expected another tag than id' },
    });
    for (const other of [Number.MAX_SAFE_INTEGER, theirs.id]) {
      expect(await merge(tags[0].id, other)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
      expect((await merge(other, tags[0].id)).status).toBe(404);
    }
    expect(await tagsOf(id)).toEqual(['kept']);
  });

  test('leaves one of two tags that are merged in both directions at once', async () => {
    const { id, tags } = await add(['one', 'two']);
    const [one, two] = tags as { id: number }[];
    const ends = await Promise.all([merge(one!.id, two!.id), merge(two!.id, one!.id)]);
    expect(ends.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect(await tagsOf(id)).toHaveLength(1);
  });
});
