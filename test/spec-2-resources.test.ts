import { describe, expect, test } from 'vitest';
import { useService, useUser } from './support/service.ts';

// Section 2 of docs/contract.md and decisions 5 to 12: the fields of bookmarks and tags, and which text is valid.
// bad-input.test.ts tests limits and types.

const service = useService();
const user = useUser(service);

const URL = 'https://example.org/';
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

const add = (fields: object) => user.post('/bookmarks/add', { url: URL, ...fields });
const urlOf = (length: number) => URL + 'a'.repeat(length - URL.length);
const names = (tags: { name: string }[]) => tags.map(({ name }) => name);

/** A character that is difficult to store: it has four bytes in UTF-8 and two code units in UTF-16. */
const EMOJI = '😀';

describe('ids (decision 6)', () => {
  test('are integers from 1, below 2^53, unique over all users and never reused', async () => {
    const other = await service.user();
    const ids: number[] = [];
    for (const each of [user, other, user]) {
      const { body } = await each.post('/bookmarks/add', { url: URL });
      ids.push(body.id);
      await each.post('/bookmarks/delete', { id: body.id });
    }
    for (const id of ids) expect(Number.isSafeInteger(id) && id >= 1).toBe(true);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  });

  test('the largest id is 2^53 - 1', async () => {
    const { sql } = service.context.database;
    const [row] = await sql<{ maximum: number }[]>`
      select seqmax as maximum from pg_sequence where seqrelid = 'bookmarks_id_seq'::regclass`;
    expect(row!.maximum).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('an id may be written as 1.0 or 1e0: it is the same number', async () => {
    const { body } = await add({});
    expect((await user.post('/bookmarks/delete', `{"id":${body.id}.0}`)).status).toBe(200);
  });

  test('an unused id, up to 2^53 - 1, is NOT_FOUND', async () => {
    for (const path of ['/bookmarks/edit', '/bookmarks/delete', '/tags/update', '/tags/delete']) {
      const response = await user.post(path, { id: Number.MAX_SAFE_INTEGER, name: 'a', tags: ['a'] });
      expect(response.body.code).toBe('NOT_FOUND');
    }
  });
});

describe('timestamps (decision 7)', () => {
  test('are UTC ISO 8601 with milliseconds and Z', async () => {
    const before = Date.now();
    const { body } = await add({});
    const after = Date.now();
    for (const field of ['created_at', 'updated_at']) {
      expect(body[field]).toMatch(TIMESTAMP);
      expect(Date.parse(body[field])).toBeGreaterThanOrEqual(before);
      expect(Date.parse(body[field])).toBeLessThanOrEqual(after);
    }
    expect(body.updated_at).toBe(body.created_at);
    expect((await user.post('/bookmarks/edit', { id: body.id })).body.updated_at).toMatch(TIMESTAMP);
    expect((await user.post('/tags/create', { name: 'timed' })).body.created_at).toMatch(TIMESTAMP);
    expect((await user.post('/user/profile')).body.created_at).toMatch(TIMESTAMP);
    expect((await user.post('/export')).body.exported_at).toMatch(TIMESTAMP);
  });
});

describe('a bookmark (decision 8)', () => {
  test('has the seven fields of section 2.2 in the responses of add, list, search, sync and export', async () => {
    const owner = await service.user();
    const { body } = await owner.post('/bookmarks/add', {
      url: URL,
      title: 'T "quoted" \\ </script>',
      comment: `C\n${EMOJI}`,
      tags: ['b', 'a'],
    });
    expect(Object.keys(body)).toEqual(['id', 'url', 'title', 'comment', 'tags', 'created_at', 'updated_at']);
    for (const path of ['/bookmarks/list', '/bookmarks/search', '/bookmarks/sync', '/export']) {
      expect((await owner.post(path)).body.bookmarks, path).toEqual([body]);
    }
  });

  test('has "" for an absent title or comment, never null, and no tags by default', async () => {
    expect((await add({})).body).toMatchObject({ title: '', comment: '', tags: [] });
    const { body } = await user.post('/import', { bookmarks: [{ url: `${URL}import` }] });
    expect(body.imported).toBe(1);
    const found = await user.post('/bookmarks/search', { query: `${URL}import` });
    expect(found.body.bookmarks[0]).toMatchObject({ title: '', comment: '', tags: [] });
  });

  test('has tags as { id, name }, in the order of names', async () => {
    const { tags } = (await add({ tags: ['delta', 'Alpha', 'charlie', 'Bravo'] })).body;
    expect(names(tags)).toEqual(['Alpha', 'Bravo', 'charlie', 'delta']);
    for (const tag of tags) expect(Object.keys(tag)).toEqual(['id', 'name']);
  });

  test('has the six fields of section 4.2 in the response of edit', async () => {
    const { body } = await add({ title: 'T', tags: ['a'] });
    const edited = (await user.post('/bookmarks/edit', { id: body.id, comment: 'C' })).body;
    const { created_at: _, ...rest } = body;
    expect(edited).toEqual({ ...rest, comment: 'C', updated_at: edited.updated_at });
  });
});

describe('limits of fields (decision 9)', () => {
  test('text of the maximum length is stored unchanged', async () => {
    const fields = { url: urlOf(8_192), title: EMOJI.repeat(2_048), comment: EMOJI.repeat(10_000) };
    expect((await add(fields)).body).toMatchObject(fields);
  });

  test('repeated tags of a bookmark count once towards the limit', async () => {
    const tags = Array.from({ length: 100 }, (_, i) => `r${i}`);
    const { status, body } = await add({ tags: [...tags, ...tags.map((name) => ` ${name.toUpperCase()} `)] });
    expect(status).toBe(200);
    expect(body.tags).toHaveLength(100);
  });
});

describe('text (decision 5)', () => {
  test.each([
    ['4-byte characters', `${EMOJI}𝕏𠜎`],
    ['right-to-left text', 'שלום مرحبا \u202eabc'],
    ['joined characters', '👩‍👩‍👧‍👦 🇦🇶'],
    ['characters that JSON escapes', '"\\/\b\f\n\r\t\u0001\u001f\u2028\u2029.'],
    ['noncharacters and the replacement character', '\uffff\ufffe\ufffd\u{10ffff}'],
    ['a decomposed letter', 'Cafe\u0301'],
    ['text that resembles SQL, HTML and a format', `'; drop table bookmarks; -- <b>&amp;</b> %s $1 {{x}}`],
    ['text that resembles null', 'null'],
  ])('%s is returned as it was sent', async (_, text) => {
    const { body } = await add({ title: text, comment: text });
    expect(body).toMatchObject({ title: text, comment: text });
    const { bookmarks } = (await user.post('/bookmarks/list', { limit: 500 })).body;
    expect(bookmarks.at(-1)).toEqual(body);
  });

  test('white space of ECMAScript is trimmed at the ends, and kept inside', async () => {
    const space = '\t\n\v\f\r \u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff';
    const { body } = await add({
      url: `${space}${URL}${space}`,
      title: `${space}a${space}b${space}`,
      comment: `${space}c${space}`,
      tags: [`${space}d e${space}`],
    });
    expect(body).toMatchObject({ url: URL, title: `a${space}b`, comment: 'c', tags: [{ name: 'd e' }] });
    const zeroWidth = '\u200ba\u200b';
    expect((await add({ title: zeroWidth })).body.title).toBe(zeroWidth);
  });
});

describe('text in the database (decision 5)', () => {
  test('is in columns with collation "C", and no function of the schema changes its case', async () => {
    const { sql } = service.context.database;
    const columns = await sql<{ name: string; collation: string }[]>`
      select c.relname || '.' || a.attname as name, l.collname as collation
      from pg_attribute a
      join pg_class c on c.oid = a.attrelid and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
      join pg_collation l on l.oid = a.attcollation
      where a.attnum > 0 and c.relname in ('users', 'invites', 'tokens', 'tags', 'bookmarks')`;
    expect(columns.length).toBeGreaterThan(10);
    for (const { name, collation } of columns) expect(collation, name).toBe('C');
    const folding = await sql`
      select proname from pg_proc
      where pronamespace = 'public'::regnamespace and probin is null
        and prosrc ~* '\\m(lower|upper|initcap|ilike|casefold)\\M'`;
    expect(folding).toEqual([]);
  });
});

describe('urls (decision 10)', () => {
  test.each([
    'https://example.org',
    'HTTP://EXAMPLE.ORG:80/',
    'http://user:password@example.org:8080/a/../b?c=d#e',
    'https://пример.рф/путь?ключ=значение',
    'http://[2001:db8::1]/',
    'http://127.1/',
    'https:example.org',
    'https://example.org/a b',
    'https://example.org/%zz',
    `https://example.org/${EMOJI}`,
    'https://example.org/\\path',
    'https://example.org/#',
  ])('%s is stored as sent', async (url) => {
    expect((await add({ url })).body.url).toBe(url);
  });

  test.each([
    ['HTTPS://EXAMPLE.ORG/', 'https://example.org/'],
    ['https://example.org:443/', 'https://example.org/'],
    ['http://example.org:80', 'http://example.org/'],
    ['https://example.org', 'https://example.org/'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['https://example.org/a/../b', 'https://example.org/b'],
  ])('%s and %s are equal: a merge skips the second one', async (one, other) => {
    const owner = await service.user();
    await owner.post('/bookmarks/add', { url: one });
    const { body } = await owner.post('/import', { bookmarks: [{ url: other }] });
    expect(body).toEqual({ imported: 0, skipped: 1, errors: [] });
  });

  test.each([
    ['https://example.org/?a=1&b=2', 'https://example.org/?b=2&a=1'],
    ['https://example.org/#a', 'https://example.org/#b'],
    ['https://example.org/#', 'https://example.org/'],
    ['https://example.org/?', 'https://example.org/'],
    ['https://example.org/a', 'https://example.org/a/'],
    ['https://example.org/a', 'https://example.org/A'],
    ['https://example.org/', 'http://example.org/'],
    ['https://www.example.org/', 'https://example.org/'],
    ['https://example.org/%61', 'https://example.org/a'],
    ['https://user@example.org/', 'https://example.org/'],
  ])('%s and %s are different', async (one, other) => {
    const owner = await service.user();
    const { body } = await owner.post('/import', { bookmarks: [{ url: one }, { url: other }] });
    expect(body).toEqual({ imported: 2, skipped: 0, errors: [] });
  });
});
