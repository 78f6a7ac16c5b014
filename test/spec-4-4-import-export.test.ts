import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { BOUNDS } from '../src/domain/bounds.ts';
import { OutboundBacklog } from '../src/flow/held-bytes.ts';
import { Semaphore } from '../src/flow/semaphore.ts';
import { streamPages } from '../src/http/streamed-pages.ts';
import { PAGE_BYTES } from '../src/store/bookmarks.ts';
import { runOn } from './support/database.ts';
import { connectTo } from './support/responses.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';

// Section 4.4 of docs/contract.md and decisions 17 to 21: small imports, staged imports and exports.

const URL = 'https://example.org/';
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

// biome-ignore lint/suspicious/noExplicitAny: imported entries have every shape
type Entry = any;

interface Exported {
  id: number;
  url: string;
  title: string;
  comment: string;
  tags: { id: number; name: string }[];
  created_at: string;
  updated_at: string;
}

const importInto = (owner: TestUser, bookmarks: Entry[], mode?: string) =>
  owner.post('/import', { bookmarks, ...(mode && { mode }) });
const exportOf = async (owner: TestUser): Promise<Exported[]> => (await owner.post('/export')).body.bookmarks;
const withoutIds = (bookmarks: Exported[]) => bookmarks.map(({ id: _, ...rest }) => rest);
const urlsOf = async (owner: TestUser) => (await exportOf(owner)).map(({ url }) => url);
const tagsOf = async (owner: TestUser) => (await owner.post('/tags/list')).body.tags;

describe.each([
  ['small', {}],
  ['staged', { importInlineBytes: 0 }],
])('a %s import', (_, config) => {
  const service = useService(config);
  let user: TestUser;
  beforeEach(async () => {
    user = await service.user();
  });

  describe('accepts what export returns (decision 18)', () => {
    test('reads all fields, with tags as names or as objects with a name, and ignores id and unknown fields', async () => {
      const fields = { title: ' T ', comment: 'C', created_at: '2020-01-02T03:04:05.678Z' };
      const { body } = await importInto(user, [
        { id: 7, url: ` ${URL}a `, ...fields, updated_at: '2021-01-02T03:04:05.678Z', tags: ['y', 'x'] },
        { id: 'no id', url: `${URL}b`, tags: [{ id: 1, name: 'X ' }, { name: 'Zoë' }, 'zoë'], color: 'red' },
      ]);
      expect(body).toEqual({ imported: 2, skipped: 0, errors: [] });
      const [a, b] = await exportOf(user);
      expect(a).toMatchObject({
        url: `${URL}a`,
        title: 'T',
        comment: 'C',
        created_at: '2020-01-02T03:04:05.678Z',
        updated_at: '2021-01-02T03:04:05.678Z',
      });
      expect(a!.id).not.toBe(7);
      expect(a!.tags.map(({ name }) => name)).toEqual(['x', 'y']);
      expect(b).toMatchObject({ title: '', comment: '' });
      expect(b!.tags.map(({ name }) => name)).toEqual(['x', 'Zoë']);
    });

    test('replaces an absent created_at by now, and an absent updated_at by created_at', async () => {
      const before = new Date().toISOString();
      await importInto(user, [
        { url: `${URL}neither` },
        { url: `${URL}created`, created_at: '2001-02-03T04:05:06Z' },
        { url: `${URL}updated`, updated_at: '2001-02-03T04:05:06Z' },
      ]);
      const after = new Date().toISOString();
      const [neither, created, updated] = await exportOf(user);
      for (const moment of [neither!.created_at, updated!.created_at]) {
        expect(moment >= before && moment <= after).toBe(true);
        expect(moment).toMatch(TIMESTAMP);
      }
      expect(neither!.updated_at).toBe(neither!.created_at);
      expect(created).toMatchObject({
        created_at: '2001-02-03T04:05:06.000Z',
        updated_at: '2001-02-03T04:05:06.000Z',
      });
      expect(updated!.updated_at).toBe('2001-02-03T04:05:06.000Z');
    });

    test('reads times in ISO 8601, as UTC if there is no offset, and truncates them to milliseconds', async () => {
      const cases = [
        ['2024-02-29T12:00:00Z', '2024-02-29T12:00:00.000Z'],
        ['2000-02-29T12:00:00Z', '2000-02-29T12:00:00.000Z'],
        ['2024-01-01t00:00:00z', '2024-01-01T00:00:00.000Z'],
        ['2024-01-01T00:00:00+02:00', '2023-12-31T22:00:00.000Z'],
        ['2024-01-01T00:00:00-00:00', '2024-01-01T00:00:00.000Z'],
        ['2024-01-01T00:00:00+23:59', '2023-12-31T00:01:00.000Z'],
        ['2024-01-01T00:00:00.1Z', '2024-01-01T00:00:00.100Z'],
        ['2024-01-01T00:00:00.9999999999Z', '2024-01-01T00:00:00.999Z'],
        ['1969-12-31T23:59:59.9999Z', '1969-12-31T23:59:59.999Z'],
        [`2024-01-01T00:00:00.${'0'.repeat(500)}1Z`, '2024-01-01T00:00:00.000Z'],
        ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
        ['0099-03-01T00:00:00Z', '0099-03-01T00:00:00.000Z'],
        ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
        ['1582-10-10T00:00:00Z', '1582-10-10T00:00:00.000Z'],
        // RFC 3339 allows leap seconds (5.7). In POSIX time, a leap second equals the second after it.
        ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
        ['1990-12-31T15:59:60.25-08:00', '1991-01-01T00:00:00.250Z'],
        ['2024-01-01', '2024-01-01T00:00:00.000Z'],
        ['2024-01-01T12:30', '2024-01-01T12:30:00.000Z'],
        ['2024-01-01T12:30:15', '2024-01-01T12:30:15.000Z'],
        ['2024-01-01 12:30:15.123456789', '2024-01-01T12:30:15.123Z'],
        ['2024-01-01 00:00:00Z', '2024-01-01T00:00:00.000Z'],
        ['2024-01-01T00:00:00+0230', '2023-12-31T21:30:00.000Z'],
        ['2024-01-01T00:00:00-05', '2024-01-01T05:00:00.000Z'],
        ['2024-01-01 00:00:00 -0500', '2024-01-01T05:00:00.000Z'],
        ['2016-12-31 23:59:60', '2017-01-01T00:00:00.000Z'],
      ] as const;
      const { body } = await importInto(
        user,
        cases.map(([created_at], i) => ({ url: URL + i, created_at })),
      );
      expect(body.errors).toEqual([]);
      expect((await exportOf(user)).map((bookmark) => bookmark.created_at)).toEqual(
        cases.map(([, stored]) => stored),
      );
    });

    test('reports any other date as an error of its entry', async () => {
      const odd: unknown[] = [
        '2023-02-29T00:00:00Z',
        '1900-02-29T00:00:00Z',
        '2024-04-31T00:00:00Z',
        '2024-13-01T00:00:00Z',
        '2024-00-01T00:00:00Z',
        '2024-01-00T00:00:00Z',
        '2024-01-01T24:00:00Z',
        '2024-01-01T23:60:00Z',
        '2024-01-01T23:59:61Z',
        '2024-01-01T12:30:60Z',
        '2024-01-01T23:59:60Z',
        '9999-12-31T23:59:60Z',
        '2024-01-01T00:00:00+24:00',
        '2024-01-01T00:00:00+02:60',
        '0000-01-01T00:00:00Z',
        '0001-01-01T00:00:00+00:01',
        '9999-12-31T23:59:59-00:01',
        '10000-01-01T00:00:00Z',
        '+2024-01-01T00:00:00Z',
        '-2024-01-01T00:00:00Z',
        '2024-02-30',
        '2024-01-01Z',
        '2024-01-01+02:00',
        '2024-01-01T00',
        '2024-01-01  00:00:00',
        '2024-01-01T00:00:00+02:60',
        '2024-01-01T00:00:00+2',
        '2024-01-01T00:00:00.Z',
        '2024-01-01T00:00:00,5Z',
        '2024-01-01T00:00:00 Z',
        ' 2024-01-01T00:00:00Z',
        '2024-01-01T00:00:00Z\n',
        '2024-W01-1T00:00:00Z',
        '２０２４-01-01T00:00:00Z',
        'Mon, 01 Jan 2024 00:00:00 GMT',
        'infinity',
        '-infinity',
        'epoch',
        'now',
        'today',
        '',
        '1704067200',
        1_704_067_200,
        true,
        {},
      ];
      for (const field of ['created_at', 'updated_at']) {
        const { body } = await importInto(user, [
          ...odd.map((value, i) => ({ url: URL + i, [field]: value })),
          { url: `${URL}${field}` },
        ]);
        expect(body.imported).toBe(1);
        expect(body.errors.map(({ index }: { index: number }) => odd[index])).toEqual(odd);
        for (const { error } of body.errors) expect(error).toMatch(new RegExp(`^${field}: expected `));
      }
    });

    test('restores the same collection after export and replace', async () => {
      await importInto(user, [
        { url: URL, title: 'T', comment: 'a\nb', tags: ['One', 'two'], created_at: '2020-01-01T00:00:00Z' },
        { url: 'HTTP://EXAMPLE.org:80/ä b', title: '"\\\u2028😀', tags: ['Ω', '字'] },
        { url: `${URL}?x#y`, updated_at: '1999-12-31T23:59:59.999Z' },
      ]);
      await user.post('/bookmarks/add', { url: URL, tags: ['two'] });
      await user.post('/tags/create', { name: 'unused' });
      const { bookmarks } = (await user.post('/export')).body;
      expect(bookmarks).toHaveLength(4);
      const tags = await tagsOf(user);
      expect((await importInto(user, bookmarks, 'replace')).body).toEqual({
        imported: 4,
        skipped: 0,
        errors: [],
      });
      const again = await exportOf(user);
      expect(withoutIds(again)).toEqual(withoutIds(bookmarks));
      expect(await tagsOf(user)).toEqual(tags);
      const highest = Math.max(...bookmarks.map(({ id }: Exported) => id));
      for (const { id } of again) expect(id).toBeGreaterThan(highest);
    });
  });

  describe('in merge mode', () => {
    test('is the default', async () => {
      await importInto(user, [{ url: `${URL}a` }]);
      await user.post('/import', { bookmarks: [{ url: `${URL}b` }] });
      expect(await urlsOf(user)).toEqual([`${URL}a`, `${URL}b`]);
    });

    test('skips an entry if the user already has its url; the existing bookmark stays unchanged', async () => {
      const there = (await user.post('/bookmarks/add', { url: URL, title: 'mine', tags: ['mine'] })).body;
      const { body } = await importInto(user, [
        { url: 'HTTPS://EXAMPLE.ORG:443', title: 'theirs', comment: 'theirs', tags: ['theirs'] },
        { url: `${URL}new`, tags: ['new'] },
      ]);
      expect(body).toEqual({ imported: 1, skipped: 1, errors: [] });
      expect((await exportOf(user))[0]).toEqual(there);
      expect((await tagsOf(user)).map(({ name }: { name: string }) => name)).toEqual(['mine', 'new']);
    });

    test('skips an entry if an earlier one in the same array has its url', async () => {
      const { body } = await importInto(user, [
        { url: URL, title: 'first', tags: ['first'] },
        { url: 'https://EXAMPLE.org', title: 'second', tags: ['second'] },
        { url: URL, title: 'third' },
      ]);
      expect(body).toEqual({ imported: 1, skipped: 2, errors: [] });
      expect((await exportOf(user)).map(({ title }) => title)).toEqual(['first']);
      expect((await tagsOf(user)).map(({ name }: { name: string }) => name)).toEqual(['first']);
    });

    test('does not skip a valid entry because of an earlier invalid one with the same url', async () => {
      const { body } = await importInto(user, [{ url: URL, title: 1 }, { url: URL }]);
      expect(body).toMatchObject({ imported: 1, skipped: 0, errors: [{ index: 0 }] });
    });

    test('does not skip an entry because another user has its url', async () => {
      await importInto(await service.user(), [{ url: URL }]);
      expect((await importInto(user, [{ url: URL }])).body.imported).toBe(1);
    });

    test('accepts the same import again without effect (decision 21)', async () => {
      const entries = [{ url: `${URL}a`, tags: ['a'] }, { url: `${URL}b` }];
      await importInto(user, entries);
      const before = await exportOf(user);
      expect((await importInto(user, entries)).body).toEqual({ imported: 0, skipped: 2, errors: [] });
      expect(await exportOf(user)).toEqual(before);
    });

    test('imports the valid entries, and returns an error for each invalid one with index, url, code and message, in the order of index', async () => {
      const entries: Entry[] = [
        { url: `${URL}good` },
        { url: 'javascript:alert(1)' },
        { title: 'no url' },
        { url: null },
        null,
        'https://example.org/',
        [],
        { url: `${URL}good` },
        { url: `${URL}a`, title: 'x'.repeat(2_049) },
        { url: `${URL}b`, tags: ['fine', ''] },
        { url: `${URL}c`, tags: [{ name: 'x'.repeat(256) }] },
        { url: `${URL}d`, tags: [{ id: 1 }] },
        { url: `${URL}e`, tags: 'fine' },
        { url: `${URL}f`, tags: Array.from({ length: 101 }, (_, i) => `t${i}`) },
        { url: `${URL}g`, comment: 'a\0b' },
        { url: `${URL}\ud800` },
        { url: URL.padEnd(8_193, 'x') },
        { url: `${URL}h`, title: 7 },
        { url: 7, title: 'T' },
        { url: `${URL}last` },
      ];
      const { body } = await importInto(user, entries);
      const badIndexes = [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];
      expect(body).toMatchObject({ imported: 2, skipped: 1 });
      expect(body.errors.map(({ index }: { index: number }) => index)).toEqual(badIndexes);
      for (const { index, url, code, error, ...rest } of body.errors) {
        const sent = entries[index]?.url;
        // The response contains the url in a form that every client can read. Half a surrogate pair becomes U+FFFD, and
        // a long text is truncated.
        const text = typeof sent === 'string' ? sent.toWellFormed() : null;
        expect(url).toBe(text !== null && text.length > 200 ? `${text.slice(0, 200)}…` : text);
        expect(code).toBe('VALIDATION_ERROR');
        expect(error).toMatch(/^(url|title|comment|tags(\[\d+\])?): |^expected an object$/);
        expect(rest).toEqual({});
      }
      expect(body.errors[0].error).toBe('url: expected an http or https url');
      expect(body.errors[7].error).toBe('tags[1]: may not be empty');
      expect(await urlsOf(user)).toEqual([`${URL}good`, `${URL}last`]);
      expect(await tagsOf(user)).toEqual([]);
    });

    test('imported + skipped + errors is the number of entries, and ids follow the order of the entries', async () => {
      const entries = Array.from({ length: 1_000 }, (_, i) =>
        i % 7 === 0 ? { url: i } : { url: `${URL}${i % 3 === 0 ? 'same' : i}` },
      );
      const { imported, skipped, errors } = (await importInto(user, entries)).body;
      expect(imported + skipped + errors.length).toBe(1_000);
      const wanted = entries.map(({ url }) => url).filter((url) => typeof url === 'string');
      expect(await urlsOf(user)).toEqual([...new Set(wanted)]);
      expect((await importInto(user, [])).body).toEqual({ imported: 0, skipped: 0, errors: [] });
    });
  });

  describe('in replace mode (decision 20)', () => {
    test("replaces the user's bookmarks by the array, and does not affect other users", async () => {
      const other = await service.user();
      await importInto(other, [{ url: URL }]);
      await importInto(user, [{ url: `${URL}old` }, { url: `${URL}both` }]);
      const { body } = await importInto(user, [{ url: `${URL}both` }, { url: `${URL}new` }], 'replace');
      expect(body).toEqual({ imported: 2, skipped: 0, errors: [] });
      expect(await urlsOf(user)).toEqual([`${URL}both`, `${URL}new`]);
      expect(await urlsOf(other)).toEqual([URL]);
      expect((await user.post('/bookmarks/search')).body.total).toBe(2);
    });

    test('never skips an entry: repeated urls are kept', async () => {
      const { body } = await importInto(user, [{ url: URL }, { url: URL }], 'replace');
      expect(body).toEqual({ imported: 2, skipped: 0, errors: [] });
      expect(await urlsOf(user)).toEqual([URL, URL]);
    });

    test('removes all bookmarks if the array is empty', async () => {
      await importInto(user, [{ url: URL, tags: ['kept'] }]);
      expect((await importInto(user, [], 'replace')).body.imported).toBe(0);
      expect(await urlsOf(user)).toEqual([]);
    });

    test('keeps the ids and names of tags, and keeps unused tags', async () => {
      await importInto(user, [{ url: URL, tags: ['Kept', 'Again'] }]);
      const before = await tagsOf(user);
      await importInto(user, [{ url: URL, tags: ['again', 'new'] }], 'replace');
      const [again, kept, added] = await tagsOf(user);
      expect(again).toEqual({ ...before[0], bookmark_count: 1 });
      expect(kept).toEqual({ ...before[1], bookmark_count: 0 });
      expect(added).toMatchObject({ name: 'new', bookmark_count: 1 });
    });

    test('changes nothing if an entry is invalid, and returns the first invalid index and the number of invalid entries', async () => {
      await importInto(user, [{ url: URL, tags: ['mine'] }]);
      const before = await exportOf(user);
      const one = await importInto(user, [{ url: URL }, { url: 'x', tags: ['never'] }], 'replace');
      expect([one.status, one.body.code]).toEqual([400, 'VALIDATION_ERROR']);
      expect(one.body.error).toMatch(/^bookmarks\[1\]: url: .*\b1 entry\b/);
      const three = await importInto(user, [{}, { url: URL }, 5, { url: '' }], 'replace');
      expect(three.body.error).toMatch(/^bookmarks\[0\]: url: .*\b3 entries\b/);
      expect(await exportOf(user)).toEqual(before);
      expect(await tagsOf(user)).toHaveLength(1);
    });
  });

  test.each([
    ['with malformed JSON', '{"bookmarks":['],
    ['with an array as its body', '[]'],
    ['without bookmarks', '{"mode":"merge"}'],
    ['with bookmarks that are not an array', '{"bookmarks":{}}'],
    ['with an unknown mode', '{"bookmarks":[],"mode":"Replace"}'],
    ['with a byte that never occurs in UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
  ])('%s is a VALIDATION_ERROR and changes nothing', async (_, body) => {
    await importInto(user, [{ url: URL }]);
    const response = await user.post('/import', body);
    expect([response.status, response.body.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(await urlsOf(user)).toEqual([URL]);
  });

  test('100,000 entries are accepted, and not one more (decision 9)', async () => {
    const entries = Array.from({ length: 100_000 }, () => ({ url: URL }));
    expect((await importInto(user, entries)).body).toEqual({ imported: 1, skipped: 99_999, errors: [] });
    for (const mode of ['merge', 'replace']) {
      expect((await importInto(user, Array(100_001).fill(0), mode)).body).toEqual({
        code: 'VALIDATION_ERROR',
        error: 'bookmarks: at most 100000 entries',
      });
    }
  });

  test('is LIMIT_EXCEEDED and changes nothing if it would exceed the limit of bookmarks, and is accepted up to the limit', async () => {
    await using own = await startService({ ...config, freeBookmarkLimit: 3 });
    const owner = await own.user();
    await importInto(owner, [{ url: `${URL}a` }, { url: `${URL}b` }]);
    const before = await exportOf(owner);
    const tooMany = [1, 2].map((n) => ({ url: URL + n, tags: ['never'] }));
    const refused = await importInto(owner, tooMany);
    expect([refused.status, refused.body.code]).toEqual([403, 'LIMIT_EXCEEDED']);
    const replaced = await importInto(owner, [...tooMany, ...before], 'replace');
    expect(replaced.body.code).toBe('LIMIT_EXCEEDED');
    expect(await exportOf(owner)).toEqual(before);
    expect(await tagsOf(owner)).toEqual([]);

    const fitting = await importInto(owner, [...before, { url: `${URL}c` }]);
    expect(fitting.body).toEqual({ imported: 1, skipped: 2, errors: [] });
    expect((await importInto(owner, before)).body).toEqual({ imported: 0, skipped: 2, errors: [] });
    expect((await importInto(owner, [...tooMany, { url: URL }], 'replace')).body.imported).toBe(3);
  });

  test('an import is one transaction: readers see all of it or nothing', async () => {
    const entries = (name: string) => Array.from({ length: 300 }, (_, i) => ({ url: `${URL}${name}/${i}` }));
    await importInto(user, entries('start'));
    const done = importInto(user, entries('next'), 'replace').then(() => importInto(user, entries('more')));
    const totals = new Set<number>();
    for (let going = true; going; ) {
      going = await Promise.race([done.then(() => false), new Promise<true>((r) => setImmediate(r, true))]);
      totals.add((await user.post('/bookmarks/search', { query: 'example' })).body.total);
    }
    for (const total of totals) expect([300, 600]).toContain(total);
    expect(totals).toContain(600);
  });

  test('runs after another one of the same user, and both are executed', async () => {
    const [one, other] = await Promise.all([
      importInto(user, [{ url: `${URL}a` }, { url: `${URL}b` }]),
      importInto(user, [{ url: `${URL}b` }, { url: `${URL}c` }]),
    ]);
    const ended = [one, other].filter(({ status }) => status === 200);
    for (const { status } of [one, other]) expect([200, 429]).toContain(status);
    expect(ended.reduce((sum, { body }) => sum + body.imported, 0)).toBe((await urlsOf(user)).length);
  });
});

describe('a staged import as a job (decision 21)', () => {
  const service = useService({ importInlineBytes: 0 });
  let user: TestUser;

  beforeEach(async () => {
    user = await service.user();
  });

  const rows = () =>
    runOn<{ state: string }>(service.database.url, `select state from imports where user_id = ${user.id}`);
  const untilState = (state: string) => expect.poll(rows).toMatchObject([{ state }]);

  /** Sends the head of an import and the first ten bytes of its body. `rest` is the rest of the body. */
  async function startUpload() {
    const body = JSON.stringify({ bookmarks: [{ url: URL }] });
    const connection = connectTo(service.origin);
    onTestFinished(() => connection.destroy());
    await connection.write(
      `POST /api/v1/import HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${user.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    return { connection, rest: body.slice(10) };
  }

  test('is limited to one at a time per user: a second one gets RATE_LIMITED with Retry-After', async () => {
    const { connection, rest } = await startUpload();
    await untilState('receiving');
    const second = await importInto(user, [{ url: `${URL}second` }]);
    expect([second.status, second.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await importInto(await service.user(), [{ url: URL }])).status).toBe(200);
    await connection.write(rest);
    expect((await connection.responses())[0]).toMatchObject({ status: 200, body: { imported: 1 } });
    expect((await importInto(user, [{ url: `${URL}second` }])).status).toBe(200);
  });

  test('never runs if its upload is aborted, and makes room for the next one', async () => {
    const { connection } = await startUpload();
    await untilState('receiving');
    connection.destroy();
    await untilState('cancelled');
    expect(await urlsOf(user)).toEqual([]);
    expect((await importInto(user, [{ url: `${URL}next` }])).body.imported).toBe(1);
  });

  test('runs even if the client disconnects after its body was received', async () => {
    const { connection, rest } = await startUpload();
    await untilState('receiving');
    await connection.write(rest);
    await expect.poll(rows).not.toMatchObject([{ state: 'receiving' }]);
    connection.destroy();
    await expect.poll(() => urlsOf(user)).toEqual([URL]);
  });

  test('never runs after its request got 503', async () => {
    await using own = await startService({ importInlineBytes: 0, importWaitSeconds: 1 });
    const owner = await own.user();
    await owner.post('/bookmarks/add', { url: `${URL}mine` });
    const { imports } = own.context.coordination;
    await imports.stopWorker(0);
    const response = await importInto(owner, [{ url: `${URL}replaced` }], 'replace');
    expect([response.status, response.body.code]).toEqual([503, 'UNAVAILABLE']);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);

    await imports.startWorker(2);
    const [row] = await runOn<{ id: string }>(own.database.url, 'select id from imports');
    await imports.add(`${owner.id}-${row!.id}`);
    await imports.stopWorker(10_000);
    expect(await urlsOf(owner)).toEqual([`${URL}mine`]);
  });

  test('is refused with 503 beyond the limit of staged bytes of all users', async () => {
    await using own = await startService({ importInlineBytes: 0, importStagedBytes: 100 });
    const owner = await own.user();
    expect((await importInto(owner, [{ url: URL }])).status).toBe(200);
    const response = await importInto(owner, [{ url: URL.padEnd(200, 'x') }]);
    expect([response.status, response.body.code]).toEqual([503, 'UNAVAILABLE']);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });

  // Does not run on a sharded database, because each of its nodes has its own limit.
  test.skipIf(inject('citusUrl') !== undefined)(
    'does not exceed the limit of staged bytes together with others that start at the same time',
    async () => {
      await using own = await startService({ importInlineBytes: 0, importStagedBytes: 1_000 });
      const [first, second] = [await own.user(), await own.user()];
      await using beginning = await holdLock(
        own.database.url,
        `select begin_import(user_id, token_hash, gen_random_uuid(), 950, 1000) from tokens
      where user_id = ${first.id}`,
      );
      const response = importInto(second, [{ url: URL.padEnd(100, 'x') }]);
      await untilBlocked(own.database.url, 'begin_import');
      await beginning.commit();
      expect((await response).body.code).toBe('UNAVAILABLE');
    },
  );

  // Does not run on a sharded database, because each of its nodes has its own limit.
  test.skipIf(inject('citusUrl') !== undefined)(
    'counts towards that limit with its real size, and with what the worker has prepared',
    async () => {
      const sent = JSON.stringify({
        bookmarks: Array.from({ length: 1_200 }, (_, n) => ({ url: `${URL}${n}`, title: 'x'.repeat(1_500) })),
      });
      const limit = BOUNDS.importBytes + 2 * sent.length;
      await using own = await startService({ importInlineBytes: 0, importStagedBytes: limit });
      // A body without an announced length counts with the largest possible size until it is complete.
      const sendChunked = async ({ token }: TestUser, body: string) => {
        const connection = connectTo(own.origin);
        await connection.write(
          `POST /api/v1/import HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n` +
            'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
            `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        );
        return connection;
      };
      const first = await own.user({ premium: true });
      await using account = await holdAccount(own.database.url, first);
      const whole = await sendChunked(first, sent);
      // The worker has prepared the import, and waits for the account.
      await untilBlocked(own.database.url, 'import_bookmarks');
      const padded = JSON.stringify({ bookmarks: [], pad: 'x'.repeat(sent.length) });
      expect((await (await own.user()).post('/import', padded)).status).toBe(200);
      const refused = await sendChunked(await own.user(), '{"bookmarks":[]}');
      expect((await refused.responses())[0]).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
      await account.release();
      expect((await whole.responses())[0]).toMatchObject({ status: 200, body: { imported: 1_200 } });
    },
  );

  test.skipIf(inject('citusUrl') !== undefined)(
    'is queued again if the statement that queues it was lost',
    async () => {
      await using own = await startService({ importInlineBytes: 0, importWaitSeconds: 60 });
      await runOn(
        own.database.url,
        `create sequence losses;
      create function lose() returns trigger language plpgsql as $$
      begin
        if nextval('losses') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
        return new;
      end $$;
      create trigger lose before update on imports for each row when (old.state <> new.state) execute function lose()`,
      );
      const response = await importInto(await own.user(), [{ url: URL }]);
      expect([response.status, response.body]).toEqual([200, { imported: 1, skipped: 0, errors: [] }]);
      // A job from before the import was queued could still end when the next one is added, which would then be ignored.
      expect(own.context.coordination.counters.importsInProcess).toBe(1);
    },
  );

  test('is RATE_LIMITED while more than 16 MiB of errors of earlier imports were not read', async () => {
    const setUnread = (bytes: number) =>
      runOn(
        service.database.url,
        `insert into imports (user_id, id, is_staged, state, result, errors)
        values (${user.id}, '00000000-0000-0000-0000-000000000001', true, 'done', '{}', convert_to(repeat('e', ${bytes}), 'UTF8'))
        on conflict (user_id, id) do update set errors = excluded.errors`,
      );
    await setUnread(16_777_217);
    expect((await importInto(user, [{ url: URL }])).body.code).toBe('RATE_LIMITED');
    await setUnread(16_777_216);
    expect((await importInto(user, [{ url: URL }])).status).toBe(200);
  });

  test('leaves nothing of its body behind', async () => {
    await importInto(user, [{ url: URL }]);
    await user.post('/import', '{"broken');
    await importInto(user, [{}], 'replace');
    const chunks = `select 1 from import_chunks where user_id = ${user.id}`;
    expect(await runOn(service.database.url, chunks)).toEqual([]);
  });
});

test('a small import has a row before it writes, which ends with it', async () => {
  await using own = await startService({ freeBookmarkLimit: 1 });
  const rows = () =>
    runOn<{ state: string }>(own.database.url, 'select state, is_staged from imports order by created_at');
  const user = await own.user();
  await user.post('/import', '{"broken');
  expect(await rows()).toEqual([]);
  await using account = await holdAccount(own.database.url, user);
  const response = importInto(user, [{ url: URL }]);
  await untilBlocked(own.database.url, 'import_bookmarks');
  expect(await rows()).toEqual([{ state: 'queued', is_staged: false }]);
  await account.release();
  expect((await response).status).toBe(200);
  const refused = await importInto(user, [{ url: `${URL}2` }]);
  expect(refused.body.code).toBe('LIMIT_EXCEEDED');
  expect((await rows()).map(({ state }) => state)).toEqual(['done', 'cancelled']);
});

describe('export (decision 17)', () => {
  const service = useService();
  let user: TestUser;
  beforeEach(async () => {
    user = await service.user();
  });

  test('is an empty list for an account without bookmarks', async () => {
    const before = new Date().toISOString();
    const { body } = await user.post('/export');
    expect(body).toEqual({ bookmarks: [], exported_at: expect.stringMatching(TIMESTAMP), count: 0 });
    expect(body.exported_at >= before && body.exported_at <= new Date().toISOString()).toBe(true);
  });

  test('contains all bookmarks with their tags, by ascending id, and their number as count', async () => {
    await importInto(
      user,
      Array.from({ length: 2_345 }, (_, i) => ({ url: `${URL}${i}`, tags: [`t${i % 5}`] })),
    );
    const { bookmarks, count } = (await user.post('/export')).body;
    expect(count).toBe(2_345);
    expect(bookmarks.map(({ url }: Exported) => url)).toEqual(
      Array.from({ length: 2_345 }, (_, i) => `${URL}${i}`),
    );
    const ids = bookmarks.map(({ id }: Exported) => id);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => Number(a) - Number(b)));
    for (const [i, { tags }] of bookmarks.entries()) {
      expect(tags).toEqual([{ id: expect.any(Number), name: `t${i % 5}` }]);
    }
  });

  test('contains nothing of other users', async () => {
    await importInto(await service.user(), [{ url: URL }]);
    expect((await user.post('/export')).body.count).toBe(0);
  });

  /**
   * Starts an export whose reader stops after the first bytes. The export is larger than the buffers between the
   * service and the reader. So the service stops after a few thousand bookmarks, until `rest` continues to read.
   */
  async function startSlowExport() {
    await importInto(
      user,
      Array.from({ length: 3_500 }, (_, i) => ({ url: `${URL}${i}` })),
    );
    await runOn(
      service.database.url,
      `update bookmarks set comment = repeat('😀', 2500) where user_id = ${user.id}`,
    );
    const before = (await user.post('/bookmarks/search', { per_page: 100 })).body.bookmarks as Exported[];
    const response = await fetch(`${service.origin}/api/v1/export`, {
      method: 'POST',
      body: '{}',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${user.token}`,
        'accept-encoding': 'identity',
      },
    });
    expect(response.status).toBe(200);
    const reader = response.body!.getReader();
    const chunks: Uint8Array[] = [(await reader.read()).value!];
    /** Reads the rest of the response. Returns the whole text, and whether the response ended without an error. */
    const rest = async () => {
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return { ended: true, text: Buffer.concat(chunks).toString() };
          chunks.push(value);
        }
      } catch {
        return { ended: false, text: Buffer.concat(chunks).toString() };
      }
    };
    return { newest: before, rest };
  }

  test('contains each bookmark that exists from its start to its end exactly once, whatever is written meanwhile', async () => {
    const { newest, rest } = await startSlowExport();
    const [gone, edited, ...kept] = newest as [Exported, Exported, ...Exported[]];
    await user.post('/bookmarks/delete', { id: gone.id });
    await user.post('/bookmarks/edit', { id: edited.id, title: 'edited' });
    await user.post('/bookmarks/add', { url: `${URL}added` });
    await importInto(user, [{ url: `${URL}merged` }]);
    const { ended, text } = await rest();
    expect(ended).toBe(true);
    const { bookmarks, count }: { bookmarks: Exported[]; count: number } = JSON.parse(text);
    expect(count).toBe(bookmarks.length);
    expect(count).toBeGreaterThanOrEqual(3_499);
    const ids = new Set(bookmarks.map(({ id }) => id));
    expect(ids.size).toBe(count);
    for (const { id } of [edited, ...kept]) expect(ids.has(id)).toBe(true);
  });

  test('is aborted if a replace runs meanwhile: it never ends as shorter, valid JSON', async () => {
    const { rest } = await startSlowExport();
    expect((await importInto(user, [{ url: URL }], 'replace')).body.imported).toBe(1);
    const { ended, text } = await rest();
    expect(ended).toBe(false);
    expect(() => JSON.parse(text)).toThrow();
    expect(await urlsOf(user)).toEqual([URL]);
  });

  test('is aborted if its token is revoked meanwhile', async () => {
    const { rest } = await startSlowExport();
    await service.context.database.sql`delete from tokens where user_id = ${user.id}`;
    const { ended, text } = await rest();
    expect(ended).toBe(false);
    expect(() => JSON.parse(text)).toThrow();
  });

  test('reads no page if another response took its room while it waited for a permit', async () => {
    const { outboundBacklog } = service.context;
    const { id } = await service.user();
    const requestPermits = new Semaphore<number>({
      permits: 1,
      waitMs: 100_000,
      refusalError: () => new Error('refused'),
    });
    let reads = 0;
    async function* readPages() {
      reads += 1;
      yield ['page'];
    }
    const giveBack = await requestPermits.acquire(id);
    const streaming = streamPages({ requestPermits, outboundBacklog, waitMs: 100_000 }, id, readPages());
    await expect.poll(() => requestPermits.gauges(id).waiting).toBe(1);
    const makeRoom = outboundBacklog.hold(id, 1e9);
    giveBack();
    (await requestPermits.acquire(id))();
    expect(reads).toBe(0);
    makeRoom();
    expect(await (await streaming).toArray()).toEqual(['page']);
  });

  test('reads a page only if there is room for it beside the pages that other exports are reading', async () => {
    const requestPermits = new Semaphore<number>({
      permits: 4,
      waitMs: 100_000,
      refusalError: () => new Error('refused'),
    });
    // An export may use half of these bytes, so there is room for one page.
    const outboundBacklog = new OutboundBacklog({
      processBytes: 100 * PAGE_BYTES,
      userBytes: 2 * PAGE_BYTES,
    });
    let reading = 0;
    let highest = 0;
    async function* readPages() {
      reading += 1;
      highest = Math.max(highest, reading);
      await new Promise(setImmediate);
      reading -= 1;
      yield ['page'];
    }
    const stream = () => streamPages({ requestPermits, outboundBacklog, waitMs: 100_000 }, 1, readPages());
    const streams = await Promise.all(Array.from({ length: 4 }, stream));
    expect(highest).toBe(1);
    for (const each of streams) expect(await each.toArray()).toEqual(['page']);
    expect(outboundBacklog.total).toBe(0);
  });

  test('frees its connection of the pool if the reader disconnects', async () => {
    await using own = await startService({ databasePoolSize: 1 });
    const owner = await own.user();
    await importInto(
      owner,
      Array.from({ length: 1_500 }, (_, i) => ({ url: `${URL}${i}`, comment: 'x'.repeat(500) })),
    );
    for (let i = 0; i < 3; i++) {
      const gone = new AbortController();
      const response = await fetch(`${own.origin}/api/v1/export`, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${owner.token}` },
        signal: gone.signal,
      });
      gone.abort();
      await expect(response.text()).rejects.toThrow();
    }
    expect((await owner.post('/export')).body.count).toBe(1_500);
  });
});
