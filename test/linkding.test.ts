import { beforeEach, describe, expect, test } from 'vitest';
import { startService, type TestUser, useService } from './support/service.ts';

// Tests linkding's REST API (docs/linkding.md).

const service = useService({ compatLinkding: true });
let user: TestUser;
beforeEach(async () => {
  user = await service.user();
});

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
  body: any;
}

async function ask(method: string, path: string, body?: unknown, token = user.token): Promise<Answer> {
  const response = await fetch(`${service.origin}/compat/linkding/api${path}`, {
    method,
    headers: {
      authorization: `Token ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

const WHOLE = {
  url: 'https://example.org/',
  title: 'A title',
  description: 'First line\n\nThird line',
  notes: 'Some *notes*\n\n--- notes ---\nand more',
  is_archived: false,
  unread: true,
  shared: true,
  tag_names: ['one', 'two words'],
};

describe('a bookmark', () => {
  test('is returned with all the fields that were sent', async () => {
    const created = await ask('POST', '/bookmarks/', WHOLE);
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      ...WHOLE,
      id: expect.any(Number),
      web_archive_snapshot_url: '',
      favicon_url: null,
      preview_image_url: null,
      date_added: expect.stringMatching(/Z$/),
      date_modified: expect.stringMatching(/Z$/),
      website_title: null,
      website_description: null,
    });
    expect((await ask('GET', `/bookmarks/${created.body.id}/`)).body).toEqual(created.body);
  });

  test.each([
    ['', 'notes'],
    ['description', ''],
    ['', ''],
  ])('keeps the description %j separate from the notes %j', async (description, notes) => {
    const { body } = await ask('POST', '/bookmarks/', { ...WHOLE, description, notes });
    expect(body).toMatchObject({ description, notes });
  });

  test('is an ordinary bookmark of the service, and its flags are tags', async () => {
    await ask('POST', '/bookmarks/', { ...WHOLE, description: 'd', notes: 'n' });
    const { bookmarks } = (await user.post('/bookmarks/search')).body;
    expect(bookmarks).toMatchObject([{ url: WHOLE.url, comment: 'd\n\n--- notes ---\nn' }]);
    expect(bookmarks[0].tags.map(({ name }: { name: string }) => name)).toEqual([
      'one',
      'shared',
      'toread',
      'two words',
    ]);
  });

  test('is updated if its url is already saved, and not added a second time', async () => {
    const first = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const second = (await ask('POST', '/bookmarks/', { url: 'HTTPS://EXAMPLE.org', title: 'New' })).body;
    expect(second).toMatchObject({ id: first.id, title: 'New', tag_names: [], unread: false });
    expect((await ask('GET', '/bookmarks/')).body.count).toBe(1);
  });

  test('keeps its notes, with any line breaks and blanks', async () => {
    const cases = [
      ['a\n\n--- notes ---\nb', 'a\n\n--- notes ---\nb'],
      ['\n ', ''],
    ];
    for (const [i, [notes, kept]] of cases.entries()) {
      const { id } = (await ask('POST', '/bookmarks/', { url: `https://a.example/${i}`, notes })).body;
      const { body } = await ask('PATCH', `/bookmarks/${id}/`, { unread: true });
      expect(body).toMatchObject({ description: '', notes: kept });
    }
  });

  test('can be changed even if its comment contains the separator of the notes elsewhere', async () => {
    const comment = 'a\n--- notes ---\nb';
    const { id } = (await user.post('/bookmarks/add', { url: WHOLE.url, comment })).body;
    expect((await ask('POST', `/bookmarks/${id}/archive/`)).status).toBe(204);
    const { body } = await user.post('/bookmarks/get', { id });
    expect(body.bookmarks[0]).toMatchObject({ comment, tags: [{ name: 'archived' }] });
  });

  test("shows linkding's flags for their tags, ignoring case", async () => {
    const tags = ['Archived', 'ToRead', 'SHARED', 'Work'];
    const { id } = (await user.post('/bookmarks/add', { url: WHOLE.url, tags })).body;
    expect((await ask('GET', `/bookmarks/${id}/`)).body).toMatchObject({
      is_archived: true,
      unread: true,
      shared: true,
      tag_names: ['Work'],
    });
    // The flag is removed with its tag, whatever the case.
    expect((await ask('PATCH', `/bookmarks/${id}/`, { unread: false })).body.unread).toBe(false);
  });

  test('is saved once if several programs save it at once', async () => {
    const posts = Array.from({ length: 8 }, (_, i) =>
      ask('POST', '/bookmarks/', { ...WHOLE, title: `${i}` }),
    );
    expect((await Promise.all(posts)).map(({ status }) => status)).toEqual(posts.map(() => 201));
    expect((await ask('GET', '/bookmarks/')).body.count).toBe(1);
  });

  test('is replaced by PUT; PATCH changes only the given fields', async () => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const patched = await ask('PATCH', `/bookmarks/${id}/`, { unread: false, notes: 'changed' });
    expect(patched).toMatchObject({ status: 200, body: { ...WHOLE, unread: false, notes: 'changed' } });
    const put = await ask('PUT', `/bookmarks/${id}/`, { url: 'https://other.example/' });
    expect(put.body).toMatchObject({ url: 'https://other.example/', title: '', notes: '', tag_names: [] });
  });

  test('keeps a change that another client makes at the same time', async () => {
    const { id } = (await ask('POST', '/bookmarks/', { url: WHOLE.url, tag_names: ['a'] })).body;
    const answers = await Promise.all([
      ask('PATCH', `/bookmarks/${id}/`, { title: 'T' }),
      ask('PATCH', `/bookmarks/${id}/`, { notes: 'N' }),
      ask('POST', `/bookmarks/${id}/archive/`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 204]);
    expect((await ask('GET', `/bookmarks/${id}/`)).body).toMatchObject({
      title: 'T',
      notes: 'N',
      is_archived: true,
      tag_names: ['a'],
    });
  });

  test('is deleted with 204, and then is in the trash and not found', async () => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    expect(await ask('DELETE', `/bookmarks/${id}/`)).toMatchObject({ status: 204, body: undefined });
    expect((await user.post('/trash/list', { limit: 1 })).body.bookmarks).toMatchObject([{ id }]);
    for (const method of ['GET', 'DELETE']) {
      const { status, body } = await ask(method, `/bookmarks/${id}/`);
      expect([status, body]).toEqual([404, { detail: expect.any(String) }]);
    }
  });

  test('can be looked up by its url', async () => {
    await ask('POST', '/bookmarks/', WHOLE);
    const check = async (url: string) =>
      (await ask('GET', `/bookmarks/check/?url=${encodeURIComponent(url)}`)).body;
    expect(await check('https://EXAMPLE.org')).toMatchObject({
      bookmark: { title: 'A title' },
      auto_tags: [],
    });
    expect(await check('https://other.example/')).toMatchObject({ bookmark: null });
  });
});

describe('lists of bookmarks', () => {
  test('contain no archived bookmarks, which have their own list', async () => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    await ask('POST', '/bookmarks/', { url: 'https://b.example/' });
    await ask('POST', `/bookmarks/${id}/archive/`);
    const urls = async (path: string) =>
      (await ask('GET', path)).body.results.map(({ url }: { url: string }) => url);
    expect(await urls('/bookmarks/')).toEqual(['https://b.example/']);
    expect(await urls('/bookmarks/archived/')).toEqual([WHOLE.url]);
    await ask('POST', `/bookmarks/${id}/unarchive/`);
    expect(await urls('/bookmarks/archived/')).toEqual([]);
  });

  test('have pages by limit and offset, newest first, with links to the next and previous page', async () => {
    const bookmarks = Array.from({ length: 25 }, (_, i) => ({
      url: `https://example.org/${i}`,
      created_at: new Date(Date.UTC(2020, 0, i + 1)).toISOString(),
    }));
    await user.post('/import', { bookmarks });
    const expected = bookmarks.map(({ url }) => url).reverse();
    const seen: string[] = [];
    let next: string | null = '/bookmarks/?limit=7&q=example';
    while (next !== null) {
      const { body }: Answer = await ask('GET', next.replace(`${service.origin}/compat/linkding/api`, ''));
      expect(body.count).toBe(25);
      seen.push(...body.results.map(({ url }: { url: string }) => url));
      next = body.next;
    }
    expect(seen).toEqual(expected);
    const slashes = await fetch(`${service.origin}//compat/linkding/api/bookmarks?limit=7&q=example`, {
      headers: { authorization: `Token ${user.token}` },
    });
    const { next: following } = (await slashes.json()) as { next: string };
    expect(following).toBe(`${service.origin}/compat/linkding/api/bookmarks/?limit=7&q=example&offset=7`);
    const { body } = await ask('GET', '/bookmarks/?limit=7&offset=10');
    expect(body.results.map(({ url }: { url: string }) => url)).toEqual(expected.slice(10, 17));
    expect(body.previous).toContain('offset=3');
    expect((await ask('GET', '/bookmarks/?limit=x&offset=-1')).body.results).toHaveLength(25);
    for (const offset of [2 ** 31 - 1, 2 ** 31, '999999999999999', '9'.repeat(16), '9'.repeat(400)]) {
      for (const limit of [1, 7, 100]) {
        const query = `?offset=${offset}&limit=${limit}`;
        expect((await ask('GET', `/bookmarks/${query}`)).body).toMatchObject({
          count: 25,
          next: null,
          results: [],
        });
        expect((await ask('GET', `/tags/${query}`)).body).toMatchObject({ next: null, results: [] });
      }
    }
  });

  test.each([
    ['q=title', 1],
    ['q=%23one', 1],
    ['q=%23ONE%20title', 1],
    ['q=%23none', 0],
    ['q=!unread', 1],
    ['q=!untagged', 1],
    ['q=%22A%20title%22', 1],
    ['added_since=2100-01-01T00:00:00Z', 0],
  ])('find bookmarks by %s', async (query, count) => {
    await ask('POST', '/bookmarks/', WHOLE);
    await ask('POST', '/bookmarks/', { url: 'https://b.example/' });
    expect((await ask('GET', `/bookmarks/?${query}`)).body.count).toBe(count);
  });

  test.each(['modified_since=2020-01-01T00:00:00Z', 'bundle=1', 'added_since=yesterday'])(
    'refuse the filter %s, because ignoring it would find too many bookmarks',
    async (query) => {
      expect((await ask('GET', `/bookmarks/?${query}`)).status).toBe(400);
    },
  );
});

test('tags can be listed, found and created', async () => {
  const created = (await ask('POST', '/tags/', { name: 'Work' })).body;
  expect(created).toEqual({ id: expect.any(Number), name: 'Work', date_added: null });
  for (const name of ['work', ' WORK\t'])
    expect((await ask('POST', '/tags/', { name })).body).toEqual(created);
  expect((await ask('GET', `/tags/${created.id}/`)).body).toEqual(created);
  expect((await ask('GET', '/tags/')).body).toEqual({
    count: 1,
    next: null,
    previous: null,
    results: [created],
  });
  expect((await ask('GET', '/tags/999/')).status).toBe(404);
  const names = ['Raf\u00e9', 'Rafe\u0301', 'RAF\u00c9', 'raf\u00e9'];
  const made = await Promise.all(names.map((name) => ask('POST', '/tags/', { name })));
  expect(new Set(made.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1);
});

test('the profile contains the supported version, and so does the health check, which needs no token', async () => {
  const health = await fetch(`${service.origin}/compat/linkding/health`);
  expect([health.status, await health.json()]).toEqual([200, { version: '1.46.0', status: 'healthy' }]);
  expect((await ask('GET', '/user/profile/')).body).toMatchObject({ version: '1.46.0' });
});

describe("errors of linkding's API", () => {
  test.each([
    ['POST', '/bookmarks/', {}, { url: ['is required'] }],
    ['POST', '/bookmarks/', { url: 'ftp://x/' }, { url: [expect.any(String)] }],
    ['POST', '/bookmarks/', { url: WHOLE.url, unread: 'yes' }, { unread: [expect.any(String)] }],
    ['POST', '/bookmarks/', { url: WHOLE.url, tag_names: 'a' }, { tag_names: [expect.any(String)] }],
    [
      'POST',
      '/bookmarks/',
      { url: WHOLE.url, description: 'a\n--- notes ---\nb' },
      { description: [expect.any(String)] },
    ],
    ['POST', '/tags/', {}, { name: ['is required'] }],
    ['POST', '/bookmarks/', [], { body: [expect.any(String)] }],
  ])('%s %s %j returns an error that names the field', async (method, path, body, error) => {
    expect(await ask(method, path, body)).toMatchObject({ status: 400, body: error });
  });

  test('name fields and parameters as linkding does', async () => {
    const { url } = WHOLE;
    const rule = [expect.any(String)];
    expect((await ask('POST', '/bookmarks/', { url, tag_names: [' '] })).body).toEqual({ tag_names: rule });
    const notes = 'x'.repeat(10_001);
    expect((await ask('POST', '/bookmarks/', { url, notes })).body).toEqual({ description: rule });
    expect((await ask('GET', '/bookmarks/?added_since=2026')).body).toEqual({ added_since: rule });
    expect((await ask('GET', `/bookmarks/?q=${'x'.repeat(1_001)}`)).body).toEqual({ q: rule });
  });

  test('invalid ids return 404', async () => {
    for (const id of ['0', '-1', 'x', '9007199254740993', '99999999999999999999', '1e3'])
      expect((await ask('GET', `/bookmarks/${id}/`)).status).toBe(404);
  });

  test('tokens, scopes and limits work as in the rest of the API', async () => {
    expect((await ask('GET', '/bookmarks/', undefined, 'nonsense')).status).toBe(401);
    const read = await service.token(user.id, 'read');
    expect((await ask('GET', '/bookmarks/', undefined, read)).status).toBe(200);
    expect((await ask('POST', '/bookmarks/', WHOLE, read)).status).toBe(403);
    expect(Number((await ask('GET', '/tags/')).headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
    await service.context.database.sql`delete from tokens where user_id = ${user.id}`;
    expect(await ask('GET', '/bookmarks/')).toMatchObject({
      status: 401,
      body: { detail: expect.any(String) },
    });
  });

  test('a request without a body may have any content type, and one with a body only JSON', async () => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const send = (body?: string) =>
      fetch(`${service.origin}/compat/linkding/api/bookmarks/${id}/archive/`, {
        method: 'POST',
        headers: {
          authorization: `Token ${user.token}`,
          'content-type': 'application/octet-stream',
        },
        ...(body !== undefined && { body }),
      });
    expect((await send('{}')).status).toBe(400);
    expect((await ask('GET', `/bookmarks/${id}/`)).body.is_archived).toBe(false);
    expect((await send()).status).toBe(204);
    expect((await ask('GET', `/bookmarks/${id}/`)).body.is_archived).toBe(true);
  });

  test("without the setting that enables it, linkding's API has no routes", async () => {
    await using plain = await startService({}, { database: service.database });
    const response = await fetch(`${plain.origin}/compat/linkding/api/bookmarks/`);
    expect([response.status, (await response.json()).code]).toEqual([404, 'NOT_FOUND']);
  });
});
