import { beforeAll, describe, expect, test } from 'vitest';
import { type TestUser, useService, useUser } from './support/service.ts';

// Section 4.2 of docs/contract.md and decision 14: /bookmarks/list.

const service = useService();
const user = useUser(service);
let ids: number[];

beforeAll(async () => {
  await importInto(user, 501);
  ids = (await user.post('/export')).body.bookmarks.map(({ id }: { id: number }) => id);
});

const importInto = (owner: TestUser, count: number) =>
  owner.post('/import', {
    bookmarks: Array.from({ length: count }, (_, i) => ({ url: `https://example.org/${i}` })),
  });
const list = async (body: object = {}, owner = user) => {
  const { bookmarks, ...rest } = (await owner.post('/bookmarks/list', body)).body;
  return { ids: bookmarks.map(({ id }: { id: number }) => id), ...rest };
};

describe('/bookmarks/list', () => {
  test('returns bookmarks by ascending id, by default 100 from the beginning', async () => {
    const page = await list();
    expect(page.ids).toEqual(ids.slice(0, 100));
    expect(page).toMatchObject({ has_more: true, next_cursor: expect.any(String) });
  });

  test.each([1, 7, 100, 250, 500])(
    'returns each bookmark once in pages of %i that are read by their cursors',
    async (limit) => {
      const seen: number[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await list({ limit, ...(cursor && { cursor }) });
        seen.push(...page.ids);
        if (!page.has_more) break;
        expect(page.ids).toHaveLength(limit);
        cursor = page.next_cursor;
        if (limit === 1 && seen.length === 20) return expect(seen).toEqual(ids.slice(0, 20));
      }
      expect(seen).toEqual(ids);
    },
  );

  test('omits next_cursor on the last page, even if that page is full', async () => {
    const owner = await service.user();
    expect(await list({}, owner)).toEqual({ ids: [], has_more: false });
    await importInto(owner, 3);
    const last = await list({ limit: 3 }, owner);
    expect(last).toEqual({ ids: last.ids, has_more: false });
    expect(last.ids).toHaveLength(3);
  });

  test('begins at the start with an empty cursor', async () => {
    expect(await list({ cursor: '', limit: 20 })).toEqual(await list({ limit: 20 }));
  });

  test('accepts a cursor repeatedly', async () => {
    const { next_cursor: cursor } = await list({ limit: 10 });
    const first = await list({ cursor, limit: 10 });
    expect(await list({ cursor, limit: 10 })).toEqual(first);
    expect(first.ids).toEqual(ids.slice(10, 20));
  });

  test('returns later additions last, omits deleted bookmarks, and returns nothing twice', async () => {
    const owner = await service.user();
    await importInto(owner, 6);
    const first = await list({ limit: 2 }, owner);
    const all = (await list({}, owner)).ids;
    await owner.post('/bookmarks/delete', { id: all[1] });
    await owner.post('/bookmarks/delete', { id: all[3] });
    const added = (await owner.post('/bookmarks/add', { url: 'https://example.org/new' })).body.id;
    const rest = await list({ cursor: first.next_cursor }, owner);
    expect(rest.ids).toEqual([all[2], all[4], all[5], added]);
  });
});

describe('the cursor', () => {
  const encode = (text: string) => Buffer.from(text).toString('base64url');

  test('is opaque and versioned, and belongs to its user', async () => {
    const { next_cursor: cursor } = await list({ limit: 1 });
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(Buffer.from(cursor, 'base64url').toString()).toBe(`1:${user.id}:${ids[0]}`);
  });

  test('is a VALIDATION_ERROR if it belongs to another user', async () => {
    const other = await service.user();
    await importInto(other, 2);
    const { next_cursor: cursor } = await list({ limit: 1 });
    expect((await other.post('/bookmarks/list', { cursor })).body).toEqual({
      code: 'VALIDATION_ERROR',
      error: 'cursor: belongs to another user',
    });
  });

  test('is a VALIDATION_ERROR if it is malformed', async () => {
    const { next_cursor: good } = await list({ limit: 1 });
    const hostile = [
      ' ',
      '0',
      '1',
      'null',
      'nonsense',
      ` ${good}`,
      `${good}=`,
      `${good}_`,
      good.slice(0, 4),
      good.toLowerCase(),
      good.repeat(50),
      'x'.repeat(60_000),
      '💥',
      encode(`1:${user.id}:`),
      encode(`1:${user.id}:-1`),
      encode(`1:${user.id}:1.5`),
      encode(`1:${user.id}:1e3`),
      encode(`1:${user.id}:0x10`),
      encode(`1:${user.id}:01`),
      encode(`1:0${user.id}:1`),
      encode(`1: ${user.id}:1`),
      encode(`1:${user.id}:1\n`),
      encode(`1:${user.id}:1:1`),
      encode(`1:${user.id}:9007199254740993`),
      encode(`1:${user.id}:${'9'.repeat(30)}`),
      encode(`2:${user.id}:1`),
      encode(`1:${user.id}:1 or 1=1`),
      encode(`1:${user.id}:١`),
      Buffer.from([0, 255, 254]).toString('base64url'),
    ];
    for (const cursor of hostile) {
      const { status, body } = await user.post('/bookmarks/list', { cursor });
      expect([status, body.code, body.error], cursor.slice(0, 40)).toEqual([
        400,
        'VALIDATION_ERROR',
        'cursor: is malformed',
      ]);
    }
  });
});
