import { beforeAll, describe, expect, test } from 'vitest';
import { type Config, readConfig } from '../src/config.ts';
import type { Scope } from '../src/domain/tokens.ts';
import { startService, type TestService, useService } from './support/service.ts';
import { until } from './support/until.ts';
import { newEmail } from './support/users.ts';

/**
 * The specification as a test: in its order, a test for each statement that promises something. Requests use only what
 * the specification names. Each response must have exactly the fields that the specification lists.
 */

/** Returns the limits of requests of an operator who sets nothing but these variables. */
const limitsOf = (variables: Record<string, string>): Partial<Config> =>
  Object.fromEntries(Object.entries(readConfig(variables)).filter(([name]) => name.startsWith('rateLimit')));

const service = useService(limitsOf({}));

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
  body: any;
}

/**
 * Sends a request as the specification describes it: only its two headers, and a body of JSON. `Retry-After` may only
 * come with a 429.
 */
async function send(path: string, token?: string, body: unknown = {}, to = service): Promise<Answer> {
  const response = await fetch(`${to.origin}/api/v1${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  const { status, headers } = response;
  if (status !== 429) expect(headers.get('retry-after')).toBeNull();
  return { status, headers, body: await response.json() };
}

/** Sends requests with one token. The requests must succeed. */
class Client {
  readonly token: string;
  readonly #to: TestService;

  constructor(token: string, to = service) {
    this.token = token;
    this.#to = to;
  }

  async post(path: string, body?: unknown): Promise<Answer['body']> {
    const answer = await send(path, this.token, body, this.#to);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body;
  }

  /** Sends a request that must fail. Returns its status and its code. */
  async refused(path: string, body?: unknown): Promise<[number, string]> {
    const { status, body: error } = await send(path, this.token, body, this.#to);
    expect(error).toStrictEqual(ERROR);
    return [status, error.code];
  }

  add(fields: object = {}): Promise<Answer['body']> {
    return this.post('/bookmarks/add', { url: 'https://example.org/', ...fields });
  }

  async all(): Promise<Answer['body'][]> {
    return (await this.post('/export')).bookmarks;
  }
}

/** Creates an account with an API token. */
const open = async (to = service): Promise<Client> => new Client((await to.user()).token, to);

const INTEGER = expect.toSatisfy((value: unknown) => Number.isSafeInteger(value));
const TEXT = expect.any(String);
const ISO_8601 = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const ERROR = { error: expect.stringMatching(/./), code: expect.stringMatching(/^[A-Z_]+$/) };
const TAG = { id: INTEGER, name: TEXT };
const BOOKMARK = {
  id: INTEGER,
  url: TEXT,
  title: TEXT,
  comment: TEXT,
  tags: expect.any(Array),
  created_at: ISO_8601,
  updated_at: ISO_8601,
};

const CODE = /^[A-Z0-9]{8}$/;
const WRONG_CODE = '00000000';

/** The endpoints of section 4 with their scopes. */
const SCOPES: Record<string, Scope> = {
  '/user/profile': 'read',
  '/logout': 'read',
  '/bookmarks/add': 'write',
  '/bookmarks/edit': 'write',
  '/bookmarks/delete': 'write',
  '/bookmarks/search': 'read',
  '/bookmarks/list': 'read',
  '/bookmarks/sync': 'read',
  '/tags/list': 'read',
  '/tags/create': 'write',
  '/tags/update': 'write',
  '/tags/delete': 'write',
  '/export': 'read',
  '/import': 'write',
};
const PATHS = Object.keys(SCOPES);
const pathsOf = (scope: Scope) => PATHS.filter((path) => SCOPES[path] === scope);

/** Valid bodies of the endpoints that change something. The ids do not exist. */
const UNKNOWN_ID = 2 ** 50;
const WRITES: Record<string, object> = {
  '/bookmarks/add': { url: 'https://example.org/' },
  '/bookmarks/edit': { id: UNKNOWN_ID },
  '/bookmarks/delete': { id: UNKNOWN_ID },
  '/tags/create': { name: 'created' },
  '/tags/update': { id: UNKNOWN_ID, name: 'renamed' },
  '/tags/delete': { id: UNKNOWN_ID },
  '/import': { bookmarks: [] },
};

const names = (tags: { name: string }[]) => tags.map(({ name }) => name).sort();

describe('1. What the service does', () => {
  test('a bookmark is a URL with an optional title, an optional comment and a set of tags', async () => {
    const client = await open();
    expect(await client.add()).toStrictEqual({ ...BOOKMARK, url: 'https://example.org/', tags: [] });
    const whole = { url: 'https://example.org/', title: 'T', comment: 'C', tags: ['a', 'b', 'a'] };
    expect(await client.add(whole)).toStrictEqual({
      ...BOOKMARK,
      ...whole,
      tags: [
        { ...TAG, name: 'a' },
        { ...TAG, name: 'b' },
      ],
    });
  });

  test('bookmarks belong to authenticated users: nobody else sees or changes them', async () => {
    const [owner, other] = [await open(), await open()];
    const { id, tags } = await owner.add({ tags: ['mine'] });
    for (const path of ['/export', '/bookmarks/list', '/bookmarks/search', '/bookmarks/sync'])
      expect((await other.post(path)).bookmarks).toEqual([]);
    expect(await other.post('/tags/list')).toEqual({ tags: [] });
    for (const path of ['/bookmarks/edit', '/bookmarks/delete'])
      expect(await other.refused(path, { id })).toEqual([404, 'NOT_FOUND']);
    for (const path of ['/tags/update', '/tags/delete'])
      expect(await other.refused(path, { id: tags[0].id, name: 'x' })).toEqual([404, 'NOT_FOUND']);
    expect(await owner.all()).toMatchObject([{ id, tags: [{ name: 'mine' }] }]);
  });

  test('the path of every endpoint is appended to the base address, and its method is POST', async () => {
    for (const path of [...PATHS, '/auth/invite']) {
      expect((await send(path)).status, path).not.toBe(404);
      expect((await fetch(`${service.origin}/api/v1${path}`)).status, path).toBe(404);
      expect((await fetch(service.origin + path, { method: 'POST' })).status, path).toBe(404);
    }
  });

  test('bodies of requests and responses are JSON', async () => {
    const client = await open();
    for (const answer of [await send('/user/profile', client.token), await send('/user/profile')])
      expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/);
  });

  test('operations without parameters take an empty object', async () => {
    const client = await open();
    for (const path of ['/user/profile', '/tags/list', '/export', '/logout'])
      expect(await client.post(path, {})).toEqual(expect.any(Object));
  });
});

describe('2. Resources', () => {
  test('2.2 and 2.3: bookmarks look the same in every response, and carry their tags as objects', async () => {
    const client = await open();
    const bookmark = await client.add({ title: 'T', comment: 'C', tags: ['one', 'two'] });
    expect(bookmark.tags).toStrictEqual([TAG, TAG]);
    for (const path of ['/bookmarks/list', '/bookmarks/search', '/bookmarks/sync', '/export'])
      expect((await client.post(path)).bookmarks).toStrictEqual([bookmark]);
  });

  test('2.2: the id of a bookmark is unique', async () => {
    const [one, two] = [await open(), await open()];
    const ids = [await one.add(), await two.add(), await one.add()].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
  });

  test('2.3: tag names are unique per user', async () => {
    const [one, two] = [await open(), await open()];
    await one.post('/tags/create', { name: 'reading' });
    await two.post('/tags/create', { name: 'reading' });
    expect((await one.refused('/tags/create', { name: 'reading' }))[0]).toBeGreaterThanOrEqual(400);
    expect(names((await one.post('/tags/list')).tags)).toEqual(['reading']);
  });
});

describe('4.1 Account and session', () => {
  test('/user/profile returns email, is_premium and created_at', async () => {
    for (const premium of [false, true]) {
      const { token, email } = await service.user({ premium });
      expect((await send('/user/profile', token)).body).toStrictEqual({
        email,
        is_premium: premium,
        created_at: ISO_8601,
      });
    }
  });

  test('/auth/invite exchanges a code of 8 characters for a session token and a user, without a header Authorization', async () => {
    const email = newEmail();
    const code = await service.invite(email);
    expect(code).toMatch(CODE);
    const { status, body } = await send('/auth/invite', undefined, { code });
    expect(status).toBe(200);
    expect(body).toStrictEqual({ token: TEXT, user: { id: INTEGER, email } });
    expect((await send('/user/profile', body.token)).body.email).toBe(email);
  });

  test.each(['ABCDEFG', 'ABCDEFGHI', 'ABCDEFGHIJKL', 'abcdefgh', 'ABCD-FGH', '', 12_345_678])(
    '/auth/invite takes only 8 uppercase letters and digits: not %j',
    async (code) => {
      const { status, body } = await send('/auth/invite', undefined, { code });
      expect([status, body]).toStrictEqual([400, { ...ERROR, code: 'VALIDATION_ERROR' }]);
    },
  );

  test('/logout revokes the session token of the request', async () => {
    const { token, email } = await service.session();
    const other = await service.session(email);
    const { status, body } = await send('/logout', token);
    expect([status, body]).toStrictEqual([200, { logged_out: true, message: expect.stringMatching(/./) }]);
    expect((await send('/user/profile', token)).status).toBe(401);
    expect((await send('/user/profile', other.token)).status).toBe(200);
  });

  test('/logout needs only the scope read', async () => {
    const token = await service.token((await service.user()).id, 'read');
    expect((await send('/logout', token)).body).toStrictEqual({ logged_out: true, message: TEXT });
    expect((await send('/user/profile', token)).status).toBe(401);
  });
});

describe('4.2 Bookmarks', () => {
  let client: Client;
  beforeAll(async () => {
    client = await open();
  });

  test('/bookmarks/add returns the bookmark, and creates the tags that do not exist', async () => {
    const { id } = await client.post('/tags/create', { name: 'old' });
    const body = { url: 'https://add.example/', title: 'T', comment: 'C', tags: ['old', 'new'] };
    const added = await client.post('/bookmarks/add', body);
    expect(added).toStrictEqual({ ...BOOKMARK, ...body, tags: expect.any(Array) });
    expect(names(added.tags)).toEqual(['new', 'old']);
    expect(added.tags).toContainEqual({ id, name: 'old' });
    expect(names((await client.post('/tags/list')).tags)).toEqual(['new', 'old']);
  });

  test('/bookmarks/edit updates only the provided fields, and its response has six fields', async () => {
    const { created_at, ...added } = await client.add({ title: 'T', comment: 'C', tags: ['one'] });
    let known = added;
    for (const change of [{ title: 'U' }, { comment: '' }, { title: 'V', comment: 'D' }]) {
      const edited = await client.post('/bookmarks/edit', { id: added.id, ...change });
      expect(edited).toStrictEqual({ ...known, ...change, updated_at: ISO_8601 });
      known = edited;
    }
    const stored = (await client.all()).find(({ id }) => id === added.id);
    expect(stored).toStrictEqual({ ...known, created_at });
  });

  test('a list of tags in /bookmarks/edit replaces the tags', async () => {
    const { id } = await client.add({ tags: ['one', 'two'] });
    const edit = async (tags: string[]) => names((await client.post('/bookmarks/edit', { id, tags })).tags);
    expect(await edit(['two', 'three'])).toEqual(['three', 'two']);
    expect(await edit([])).toEqual([]);
  });

  test('/bookmarks/delete deletes permanently', async () => {
    const { id, url } = await client.add({ url: 'https://deleted.example/', tags: ['kept'] });
    expect(await client.post('/bookmarks/delete', { id })).toStrictEqual({ deleted: true });
    for (const path of ['/bookmarks/delete', '/bookmarks/edit'])
      expect(await client.refused(path, { id })).toEqual([404, 'NOT_FOUND']);
    expect((await client.post('/bookmarks/search', { query: url })).total).toBe(0);
    expect((await client.all()).filter((each) => each.id === id)).toEqual([]);
    expect(await service.context.database.sql`select from trash where id = ${id}`).toHaveLength(0);
  });
});

describe('/bookmarks/search', () => {
  let client: Client;
  beforeAll(async () => {
    client = await open();
    await client.post('/import', {
      bookmarks: Array.from({ length: 120 }, (_, n) => ({
        url: `https://many.example/${n}`,
        tags: ['many'],
      })),
    });
    await client.add({ url: 'https://apple.example/', tags: ['fruit'] });
    await client.add({ title: 'An apple', tags: ['fruit', 'red'] });
    await client.add({ comment: 'some apple', tags: ['Fruit salad'] });
  });

  const search = (body: object) => client.post('/bookmarks/search', body);

  test('matches the query against URL, title and comment, and filters by tag name', async () => {
    const found = await search({ query: 'apple' });
    expect(found).toStrictEqual({
      bookmarks: [BOOKMARK, BOOKMARK, BOOKMARK],
      total: 3,
      page: 1,
      per_page: 50,
      has_more: false,
    });
    expect((await search({ tag: 'fruit' })).total).toBe(2);
    expect((await search({ query: 'an', tag: 'red' })).total).toBe(1);
    expect((await search({ query: 'nothing' })).bookmarks).toEqual([]);
  });

  test('returns pages, by default the first of 50, with the total and has_more', async () => {
    const first = await search({ query: 'many' });
    expect(first).toStrictEqual({
      bookmarks: Array(50).fill(BOOKMARK),
      total: 120,
      page: 1,
      per_page: 50,
      has_more: true,
    });
    const seen = new Set<number>();
    for (const page of [1, 2, 3]) {
      const { bookmarks, ...rest } = await search({ query: 'many', page, per_page: 40 });
      expect(rest).toStrictEqual({ total: 120, page, per_page: 40, has_more: page < 3 });
      for (const { id } of bookmarks) seen.add(id);
    }
    expect(seen.size).toBe(120);
    expect(await search({ query: 'many', page: 4, per_page: 40 })).toStrictEqual({
      bookmarks: [],
      total: 120,
      page: 4,
      per_page: 40,
      has_more: false,
    });
  });
});

describe('/bookmarks/list', () => {
  test('walks through all bookmarks by cursor: next_cursor is present when has_more is true', async () => {
    const client = await open();
    expect(await client.post('/bookmarks/list')).toStrictEqual({ bookmarks: [], has_more: false });
    for (let n = 0; n < 5; n++) await client.add({ url: `https://example.org/${n}` });
    const first = await client.post('/bookmarks/list', { limit: 2 });
    expect(first).toStrictEqual({ bookmarks: [BOOKMARK, BOOKMARK], has_more: true, next_cursor: TEXT });
    const second = await client.post('/bookmarks/list', { limit: 2, cursor: first.next_cursor });
    expect(second).toStrictEqual({ bookmarks: [BOOKMARK, BOOKMARK], has_more: true, next_cursor: TEXT });
    const last = await client.post('/bookmarks/list', { limit: 2, cursor: second.next_cursor });
    expect(last).toStrictEqual({ bookmarks: [BOOKMARK], has_more: false });
    const walked = [first, second, last].flatMap(({ bookmarks }) => bookmarks);
    expect(walked).toEqual(await client.all());
  });
});

describe('/bookmarks/sync', () => {
  test('returns the bookmarks after the cursor, 0 at first, and the new cursor', async () => {
    const client = await open();
    expect(await client.post('/bookmarks/sync', { cursor: 0 })).toStrictEqual({
      bookmarks: [],
      cursor: 0,
      has_more: false,
      waited: false,
    });
    const added = [await client.add(), await client.add(), await client.add()];
    const first = await client.post('/bookmarks/sync', { cursor: 0, limit: 2 });
    expect(first).toStrictEqual({
      bookmarks: added.slice(0, 2),
      cursor: added[1].id,
      has_more: true,
      waited: false,
    });
    expect(await client.post('/bookmarks/sync', { cursor: first.cursor })).toStrictEqual({
      bookmarks: added.slice(2),
      cursor: added[2].id,
      has_more: false,
      waited: false,
    });
  });

  test('with wait, a request waits for new bookmarks and says so', async () => {
    const client = await open();
    const { id } = await client.add();
    expect((await client.post('/bookmarks/sync', { cursor: 0, wait: true })).waited).toBe(false);
    const poll = client.post('/bookmarks/sync', { cursor: id, wait: true });
    await until(() => service.context.coordination.notifier.held === 1);
    const added = await client.add();
    expect(await poll).toStrictEqual({ bookmarks: [added], cursor: added.id, has_more: false, waited: true });
  });

  test('a wait ends after at most 30 seconds, with the same fields', async () => {
    expect(readConfig({}).syncWaitSeconds).toBeLessThanOrEqual(30);
    await using quick = await startService({ syncWaitSeconds: 0.02 });
    const client = await open(quick);
    const { id } = await client.add();
    expect(await client.post('/bookmarks/sync', { cursor: id, wait: true })).toStrictEqual({
      bookmarks: [],
      cursor: id,
      has_more: false,
      waited: true,
    });
  });

  test('a wait that ends because its replica stops has the same fields', async () => {
    await using stopping = await startService();
    const client = await open(stopping);
    const poll = client.post('/bookmarks/sync', { cursor: 0, wait: true });
    await until(() => stopping.context.coordination.notifier.held === 1);
    stopping.context.lifecycle.draining = true;
    stopping.context.coordination.notifier.drain(0);
    expect(await poll).toStrictEqual({ bookmarks: [], cursor: 0, has_more: false, waited: true });
  });
});

describe('4.3 Tags', () => {
  let client: Client;
  beforeAll(async () => {
    client = await open();
  });

  test('/tags/list returns the tags with the number of their bookmarks', async () => {
    const reader = await open();
    await reader.add({ tags: ['one', 'two'] });
    await reader.add({ tags: ['two'] });
    await reader.post('/tags/create', { name: 'unused' });
    const { tags, ...rest } = await reader.post('/tags/list');
    expect(rest).toStrictEqual({});
    expect(
      tags.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
    ).toStrictEqual([
      { id: INTEGER, name: 'one', bookmark_count: 1 },
      { id: INTEGER, name: 'two', bookmark_count: 2 },
      { id: INTEGER, name: 'unused', bookmark_count: 0 },
    ]);
  });

  test('/tags/create returns the tag, or an error if the name already exists', async () => {
    expect(await client.post('/tags/create', { name: 'new' })).toStrictEqual({
      id: INTEGER,
      name: 'new',
      created_at: ISO_8601,
    });
    expect(await client.refused('/tags/create', { name: 'new' })).toEqual([400, 'VALIDATION_ERROR']);
  });

  test('/tags/update renames a tag, also on its bookmarks', async () => {
    const { id: bookmarkId, tags } = await client.add({ tags: ['before'] });
    const [{ id }] = tags;
    expect(await client.post('/tags/update', { id, name: 'after' })).toStrictEqual({ id, name: 'after' });
    expect((await client.all()).find((each) => each.id === bookmarkId)?.tags).toEqual([
      { id, name: 'after' },
    ]);
  });

  test('/tags/delete removes the tag from all bookmarks, and deletes no bookmark', async () => {
    const bookmarks = [await client.add({ tags: ['gone', 'kept'] }), await client.add({ tags: ['gone'] })];
    const { id } = bookmarks[1].tags[0];
    expect(await client.post('/tags/delete', { id })).toStrictEqual({ deleted: true });
    const kept = (await client.all()).filter((each) => bookmarks.some((bookmark) => bookmark.id === each.id));
    expect(kept.map(({ tags }) => names(tags))).toEqual([['kept'], []]);
    expect(names((await client.post('/tags/list')).tags)).not.toContain('gone');
  });
});

describe('4.4 Import and export', () => {
  test('/export returns all bookmarks with their tags, the time and the count', async () => {
    const client = await open();
    const bookmarks = [await client.add({ tags: ['one'] }), await client.add({ title: 'T' })];
    expect(await client.post('/export')).toStrictEqual({ bookmarks, exported_at: ISO_8601, count: 2 });
  });

  test('/import adds bookmarks, and by default skips duplicates', async () => {
    const client = await open();
    await client.add({ url: 'https://example.org/there', title: 'untouched' });
    const bookmarks = [
      { url: 'https://example.org/there', title: 'ignored' },
      { url: 'https://example.org/new', title: 'T', tags: ['one', 'two'] },
      { url: 'https://example.org/bare' },
    ];
    for (const [imported, mode] of [
      [2, undefined],
      [0, 'merge'],
    ] as const) {
      expect(await client.post('/import', { bookmarks, ...(mode && { mode }) })).toStrictEqual({
        imported,
        skipped: 3 - imported,
        errors: [],
      });
    }
    const all = await client.all();
    expect(all).toStrictEqual([BOOKMARK, BOOKMARK, BOOKMARK]);
    expect(all).toMatchObject([{ title: 'untouched' }, { title: 'T' }, { title: '' }]);
    expect(names(all[1].tags)).toEqual(['one', 'two']);
  });

  test('/import lists its errors, and imports the other entries', async () => {
    const client = await open();
    const bookmarks = [{ url: 'https://example.org/' }, { title: 'no url' }];
    const result = await client.post('/import', { bookmarks });
    expect(result).toStrictEqual({ imported: 1, skipped: 0, errors: [expect.any(Object)] });
  });

  test('/import takes what /export returns, in both modes', async () => {
    const client = await open();
    await client.add({ title: 'T', comment: 'C', tags: ['one'] });
    await client.add({ url: 'https://example.org/2' });
    const { bookmarks } = await client.post('/export');
    const other = await open();
    expect(await other.post('/import', { bookmarks })).toStrictEqual({ imported: 2, skipped: 0, errors: [] });
    const replaced = await client.post('/import', { bookmarks, mode: 'replace' });
    expect(replaced).toStrictEqual({ imported: 2, skipped: 0, errors: [] });
    for (const owner of [client, other])
      expect((await owner.all()).map(({ url, tags }) => [url, names(tags)])).toEqual([
        ['https://example.org/', ['one']],
        ['https://example.org/2', []],
      ]);
  });
});

describe('5. Authentication', () => {
  test('every endpoint but /auth/invite requires a token', async () => {
    for (const path of PATHS) {
      const { status, body } = await send(path);
      expect([status, body], path).toStrictEqual([401, { ...ERROR, code: 'INVALID_TOKEN' }]);
    }
    expect((await send('/auth/invite', undefined, { code: WRONG_CODE })).body.code).not.toBe('INVALID_TOKEN');
  });

  test('session tokens and API tokens are sent the same way', async () => {
    for (const { token } of [await service.session(), await service.user()])
      expect((await send('/user/profile', token)).status).toBe(200);
  });

  test('a token with the scope read may read, and nothing else', async () => {
    const { id } = await service.user();
    const reader = new Client(await service.token(id, 'read'));
    for (const path of pathsOf('write'))
      expect(await reader.refused(path, WRITES[path]), path).toEqual([403, 'PERMISSION_DENIED']);
    for (const path of pathsOf('read').filter((each) => each !== '/logout')) await reader.post(path);
    await reader.post('/logout');
  });

  test('a token with the scope write may do everything', async () => {
    const { token } = await service.user();
    for (const path of [...pathsOf('write'), ...pathsOf('read').filter((each) => each !== '/logout')]) {
      const { body } = await send(path, token, WRITES[path]);
      expect(['PERMISSION_DENIED', 'INVALID_TOKEN'], path).not.toContain(body.code);
    }
  });

  test('a missing, an invalid and an expired token are INVALID_TOKEN', async () => {
    const { id, token } = await service.user();
    await service.context.database.sql`update tokens set expires_at = now() where user_id = ${id}`;
    for (const given of [undefined, 'nonsense', `${token}x`, token])
      for (const path of ['/user/profile', '/bookmarks/add']) {
        const { status, body } = await send(path, given, WRITES[path]);
        expect([status, body], given).toStrictEqual([401, { ...ERROR, code: 'INVALID_TOKEN' }]);
      }
  });
});

describe('7. Errors', () => {
  let client: Client;
  beforeAll(async () => {
    client = await open();
  });

  test.each([
    ['/bookmarks/add', {}],
    ['/bookmarks/add', { url: 'no url' }],
    ['/bookmarks/add', { url: 7 }],
    ['/bookmarks/add', { url: 'https://example.org/', tags: 'one' }],
    ['/bookmarks/edit', { title: 'T' }],
    ['/bookmarks/edit', { id: 'one' }],
    ['/bookmarks/delete', {}],
    ['/bookmarks/search', { page: 0 }],
    ['/bookmarks/list', { limit: 'all' }],
    ['/bookmarks/sync', { cursor: -1 }],
    ['/tags/create', {}],
    ['/tags/update', { id: 1 }],
    ['/tags/update', { name: 'one' }],
    ['/tags/delete', {}],
    ['/import', {}],
    ['/import', { bookmarks: [], mode: 'append' }],
  ])('VALIDATION_ERROR: %s without a required field or with invalid data, %j', async (path, body) => {
    expect(await client.refused(path, body)).toEqual([400, 'VALIDATION_ERROR']);
  });

  test('VALIDATION_ERROR: /auth/invite without a code', async () => {
    expect((await send('/auth/invite')).body).toStrictEqual({ ...ERROR, code: 'VALIDATION_ERROR' });
  });

  test.each(['/bookmarks/edit', '/bookmarks/delete', '/tags/update', '/tags/delete'])(
    'NOT_FOUND: %s of something that does not exist',
    async (path) => {
      expect(await client.refused(path, WRITES[path])).toEqual([404, 'NOT_FOUND']);
    },
  );

  test('LIMIT_EXCEEDED: the maximum number of bookmarks of the free tier is reached', async () => {
    await using small = await startService({ freeBookmarkLimit: 2 });
    const free = await open(small);
    await free.add();
    await free.add();
    expect(await free.refused('/bookmarks/add', WRITES['/bookmarks/add'])).toEqual([403, 'LIMIT_EXCEEDED']);
    expect((await free.post('/export')).count).toBe(2);
    const premium = new Client((await small.user({ premium: true })).token, small);
    for (let n = 0; n < 3; n++) await premium.add();
  });
});

describe('8. Limits', () => {
  const LIMIT_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

  test('a token may send 100 requests per 60 seconds; the next one is 429 with Retry-After', async () => {
    const { token, id } = await service.user();
    for (let left = 99; left >= 0; left--) {
      const { status, headers } = await send('/user/profile', token);
      expect([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual([
        200,
        '100',
        `${left}`,
      ]);
      const untilReset = Number(headers.get('x-ratelimit-reset')) - Date.parse(headers.get('date')!) / 1_000;
      expect(untilReset >= 0 && untilReset <= 61, `${untilReset} s`).toBe(true);
      expect(headers.get('retry-after')).toBeNull();
    }
    const { status, headers, body } = await send('/user/profile', token);
    expect([status, body]).toStrictEqual([429, { ...ERROR, code: 'RATE_LIMITED' }]);
    expect(headers.get('retry-after')).toMatch(/^[1-9]\d?$/);
    expect(LIMIT_HEADERS.map((name) => headers.get(name))).toEqual([
      '100',
      '0',
      expect.stringMatching(/^\d+$/),
    ]);
    const other = await service.token(id, 'write');
    expect((await send('/user/profile', other)).headers.get('x-ratelimit-remaining')).toBe('99');
  });

  test('the limit is per token: as many tokens as an account has get 100 requests each', async () => {
    await using few = await startService(limitsOf({ RATE_LIMIT_REQUESTS: '3' }));
    const { id } = await few.user();
    for (let tokens = 0; tokens < 8; tokens++) {
      const token = await few.token(id, 'read');
      const answers = [];
      for (let n = 0; n < 4; n++) answers.push((await send('/user/profile', token, {}, few)).status);
      expect(answers).toEqual([200, 200, 200, 429]);
    }
  });

  test('the limit applies to all endpoints, and all their responses have its headers', async () => {
    await using strict = await startService(limitsOf({ RATE_LIMIT_REQUESTS: '1' }));
    for (const path of PATHS) {
      const { token } = await strict.user();
      const first = await send(path, token, WRITES[path], strict);
      expect(first.status, path).not.toBe(429);
      const second = await send(path, token, WRITES[path], strict);
      expect([second.status, second.body.code], path).toEqual(
        path === '/logout' ? [401, 'INVALID_TOKEN'] : [429, 'RATE_LIMITED'],
      );
      for (const name of LIMIT_HEADERS) expect(first.headers.get(name), `${path} ${name}`).toMatch(/^\d+$/);
    }
  });

  test.each([
    ['/bookmarks/search', 'per_page', 50, 100],
    ['/bookmarks/list', 'limit', 100, 500],
    ['/bookmarks/sync', 'limit', 50, 100],
  ])('%s has a %s of %i by default and of %i at most', async (path, field, byDefault, most) => {
    const client = await open();
    const bookmarks = Array.from({ length: 501 }, (_, n) => ({ url: `https://example.org/${n}` }));
    await client.post('/import', { bookmarks });
    expect((await client.post(path)).bookmarks).toHaveLength(byDefault);
    expect((await client.post(path, { [field]: most })).bookmarks).toHaveLength(most);
    expect(await client.refused(path, { [field]: most + 1 })).toEqual([400, 'VALIDATION_ERROR']);
  });
});

test('9. The version is in the prefix /api/v1 of the base address', async () => {
  const { token } = await service.user();
  const statuses = await Promise.all(
    ['/api/v1', '/api/v2', '/v1', ''].map(async (prefix) => {
      const response = await fetch(`${service.origin}${prefix}/user/profile`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: '{}',
      });
      return response.status;
    }),
  );
  expect(statuses).toEqual([200, 404, 404, 404]);
});
