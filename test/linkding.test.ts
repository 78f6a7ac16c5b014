import { beforeEach, describe, expect, test } from 'vitest';
import { fill } from './support/fill.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { sendUnread } from './support/unread.ts';
import { until } from './support/until.ts';

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

/** `WHOLE` as linkding's clients see it: blanks in names of tags are written as `-`. */
const SHOWN = { ...WHOLE, tag_names: ['one', 'two-words'] };

describe('a bookmark', () => {
  test('is returned with all the fields that were sent', async () => {
    const created = await ask('POST', '/bookmarks/', WHOLE);
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      ...SHOWN,
      id: expect.any(Number),
      web_archive_snapshot_url: '',
      favicon_url: null,
      preview_image_url: null,
      date_added: expect.stringMatching(/\.\d{6}Z$/),
      date_modified: expect.stringMatching(/\.\d{6}Z$/),
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

  test.each(['PUT', 'PATCH'])('keeps the fields that a %s does not name', async (method) => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const changed = await ask(method, `/bookmarks/${id}/`, {
      url: WHOLE.url,
      unread: false,
      notes: 'changed',
      date_added: 'ignored',
      date_modified: '2001-01-01T00:00:00Z',
    });
    expect(changed).toMatchObject({ status: 200, body: { ...SHOWN, unread: false, notes: 'changed' } });
    expect(changed.body.date_modified > '2026').toBe(true);
  });

  test('cannot be deleted by one client and edited by another so that half of it is left', async () => {
    for (let i = 0; i < 5; i += 1) {
      const { id } = (await ask('POST', '/bookmarks/', { url: `https://a.example/${i}`, title: 'old' })).body;
      const [deleted, put] = await Promise.all([
        ask('DELETE', `/bookmarks/${id}/`),
        ask('PUT', `/bookmarks/${id}/`, { url: `https://a.example/${i}`, title: 'new', tag_names: ['x'] }),
      ]);
      expect([deleted.status, put.status]).toEqual([
        204,
        expect.toSatisfy((status) => [200, 404].includes(status)),
      ]);
      const [trashed] = (await user.post('/trash/list', { limit: 1 })).body.bookmarks;
      expect(trashed).toMatchObject({ id, title: put.status === 200 ? 'new' : 'old' });
    }
  });

  test.each(['PUT', 'PATCH'])('keeps its url if a %s names the url of another bookmark', async (method) => {
    await ask('POST', '/bookmarks/', { url: 'https://taken.example/' });
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const refused = await ask(method, `/bookmarks/${id}/`, { url: 'https://TAKEN.example', title: 'T' });
    expect(refused).toMatchObject({ status: 400, body: { url: ['another bookmark has this url'] } });
    expect((await ask('GET', `/bookmarks/${id}/`)).body).toMatchObject(SHOWN);
    // Its own url in another spelling is no other bookmark's url. The same is true for a url that is saved twice.
    await user.post('/bookmarks/add', { url: WHOLE.url });
    const same = await ask(method, `/bookmarks/${id}/`, { url: 'https://EXAMPLE.org', title: 'T' });
    expect(same).toMatchObject({ status: 200, body: { url: 'https://EXAMPLE.org', title: 'T' } });
  });

  test('gets the date that a POST names, and keeps it when a POST of the same url overwrites it', async () => {
    for (const [sent, shown] of [
      ['2019-02-03T04:05:06.123456+02:00', '2019-02-03T02:05:06.123000Z'],
      ['2019-02-03', '2019-02-03T00:00:00.000000Z'],
      ['2019-2-3 4:05', '2019-02-03T04:05:00.000000Z'],
    ]) {
      const url = `https://a.example/${shown}${sent}`;
      const created = await ask('POST', '/bookmarks/', { url, date_added: sent, is_archived: true });
      expect(created.body).toMatchObject({ date_added: shown, is_archived: true });
      const again = await ask('POST', '/bookmarks/', { url, date_added: '2020-01-01', title: 'T' });
      expect(again.body).toMatchObject({ date_added: shown, title: 'T', is_archived: true });
    }
    const refused = await ask('POST', '/bookmarks/', { url: WHOLE.url, date_added: 'soon' });
    expect(refused).toMatchObject({ status: 400, body: { date_added: [expect.any(String)] } });
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
    await ask('POST', '/bookmarks/', { url: 'https://b.example/' });
    const check = async (url: string) =>
      (await ask('GET', `/bookmarks/check/?url=${encodeURIComponent(url)}`)).body;
    expect(await check('https://EXAMPLE.org')).toMatchObject({
      bookmark: { title: 'A title' },
      auto_tags: [],
    });
    // Some clients cannot read null in the metadata.
    expect(await check('https://other.example/')).toMatchObject({
      bookmark: null,
      metadata: { url: 'https://other.example/', title: '', description: '' },
    });
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

  test('hold up to 10,000 bookmarks, from any offset', async () => {
    await fill(service.database.url, user, 1_250);
    const list = async (query: string) => (await ask('GET', `/bookmarks/?${query}`)).body;
    const whole = await list('limit=10000');
    expect(whole).toMatchObject({ count: 1_250, next: null, previous: null });
    const ids = whole.results.map(({ id }: { id: number }) => id);
    expect(ids).toEqual(ids.toSorted((a: number, b: number) => b - a));
    expect(new Set(ids).size).toBe(1_250);
    for (const [offset, limit] of [
      [0, 101],
      [150, 250],
      [77, 333],
      [1_200, 200],
      [1_250, 100],
      [0, 1],
    ] as const) {
      const { count, next, results } = await list(`limit=${limit}&offset=${offset}`);
      expect(results.map(({ id }: { id: number }) => id)).toEqual(ids.slice(offset, offset + limit));
      expect(count).toBe(1_250);
      const following = `limit=${limit}&offset=${offset + limit}`;
      expect(next?.split('?')[1] ?? null).toBe(offset + limit < 1_250 ? following : null);
    }
    // A higher limit counts as 10,000.
    expect((await list('limit=99999')).results).toHaveLength(1_250);
  });

  test('are read from the database only as fast as the client reads, without a permit', async () => {
    await fill(service.database.url, user, 3_000, 8_000);
    const { outboundBacklog } = service.context;
    const describeList = (token: string) =>
      `GET /compat/linkding/api/bookmarks/?limit=3000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token ${token}\r\n\r\n`;
    const clients = await Promise.all(
      Array.from({ length: 3 }, () => sendUnread(service.origin, describeList(user.token))),
    );
    const isHeld = () => outboundBacklog.of(user.id) > 0;
    await until(isHeld);
    expect(outboundBacklog.of(user.id)).toBeLessThan(8 * 1_048_576);
    // Other requests of the account are served meanwhile.
    expect((await ask('GET', '/tags/')).status).toBe(200);
    const [reader, ...leaving] = clients;
    for (const client of leaving) client[Symbol.dispose]();
    expect(await reader!.take(24_000_000)).toBeGreaterThanOrEqual(24_000_000);
    reader![Symbol.dispose]();
    await until(() => !isHeld());
  });

  test('end without a complete response if the token is revoked meanwhile', async () => {
    await fill(service.database.url, user, 3_000, 8_000);
    const response = await fetch(`${service.origin}/compat/linkding/api/bookmarks/?limit=3000`, {
      headers: { authorization: `Token ${user.token}` },
    });
    await service.context.database.sql`delete from tokens where user_id = ${user.id}`;
    await expect(response.text()).rejects.toThrow();
  });

  test('count as one request, however many bookmarks they hold', async () => {
    await fill(service.database.url, user, 400);
    const remaining = async (query: string) =>
      Number((await ask('GET', `/bookmarks/?${query}`)).headers.get('x-ratelimit-remaining'));
    expect((await remaining('limit=1')) - (await remaining('limit=400'))).toBe(1);
  });

  test.each([
    ['q=title', 1],
    ['q=%23one', 1],
    ['q=%23ONE%20title', 1],
    ['q=%23none', 0],
    ['q=!unread', 1],
    ['q=!untagged', 1],
    ['q=%22A%20title%22', 1],
    ['q=%22A%20%20title%22', 0],
    ["q='A title' and #one", 1],
    ['q=not%20%23one', 1],
    ['q=NOT not (%23one AND title)', 1],
    ['q=not (%23one or %23none) b.example', 1],
    ['q=not !unread', 1],
    ['q=not title', 1],
    ['q=not \'a  title\' not "b.exa"', 1],
    ['q=title or b.example', 2],
    ['q=TITLE OR nothing', 1],
    ['q=#one or #none', 1],
    ['q=#none or !unread', 1],
    ['q=(#one or b.example) and (example.org or nothing)', 1],
    ['q=example (#one and title or #none and b)', 1],
    ['q=not (not title and not b.example)', 2],
    ['q=title or title and #none', 1],
    ['q=!untagged or !untagged and b.example', 1],
    ['q=(title or b.example) not #one', 1],
    ['q=(title or b.example) not #one&unread=yes', 0],
    ['q=\\"', 0],
    ["q='' or title", 2],
    ["q='' title", 1],
    ['q=#one !unread', 1],
    ['q=&limit=&offset=&sort=&unread=&shared=&added_since=', 2],
    ['unread=yes', 1],
    ['unread=no', 1],
    ['unread=off&shared=off', 2],
    ['shared=yes&unread=yes', 1],
    ['shared=yes&unread=no', 0],
    ['added_since=2000-01-01', 2],
    ['added_since=2000-1-1 3:04', 2],
    ['added_since=2000-01-01T00:00:00.123456+00:00', 2],
    ['added_since=20000101T030405Z', 2],
    ['added_since=2099-01-01T00:00:00%2B0200', 0],
    ['modified_since=2000-01-01T00:00:00Z', 2],
    ['modified_since=2099-01-01', 0],
    ['modified_since=2099-01-01&added_since=2000-01-01&q=example', 0],
    ['added_since=2100-01-01T00:00:00Z', 0],
  ])('find bookmarks by %s', async (query, count) => {
    await ask('POST', '/bookmarks/', WHOLE);
    await ask('POST', '/bookmarks/', { url: 'https://b.example/' });
    const { status, body } = await ask('GET', `/bookmarks/?${query.replaceAll('#', '%23')}`);
    expect([status, body.count]).toEqual([200, count]);
  });

  test.each(['#hello(world)', '(#none or #Hello(world))', '#文字(测试) and #hello(world)'])(
    'find tags with brackets in their names by %s',
    async (query) => {
      const tag_names = ['hello(world)', '文字(测试)'];
      await ask('POST', '/bookmarks/', { url: 'https://a.example/', tag_names });
      await ask('POST', '/bookmarks/', { url: 'https://b.example/', tag_names: ['hello'], title: 'world' });
      const { body } = await ask('GET', `/bookmarks/?q=${encodeURIComponent(query)}`);
      expect(body.results.map(({ url }: { url: string }) => url)).toEqual(['https://a.example/']);
    },
  );

  test('are sorted by date, by change or by title', async () => {
    const ids: number[] = [];
    for (const [title, date_added] of [
      ['b', '2020-01-02'],
      ['c', '2020-01-01'],
      ['a', '2020-01-03'],
    ])
      ids.push(
        (await ask('POST', '/bookmarks/', { url: `https://${title}.example/`, title, date_added })).body.id,
      );
    await ask('PATCH', `/bookmarks/${ids[1]}/`, { notes: 'n' });
    const titles = async (sort: string) =>
      (await ask('GET', `/bookmarks/?sort=${sort}`)).body.results
        .map(({ title }: { title: string }) => title)
        .join('');
    expect(await titles('added_desc')).toBe('abc');
    expect(await titles('added_asc')).toBe('cba');
    expect(await titles('title_asc')).toBe('abc');
    expect(await titles('modified_desc')).toBe('cab');
  });

  test('that are shared also contain archived bookmarks, and take the other filters', async () => {
    await ask('POST', '/bookmarks/', { url: 'https://a.example/', shared: true, is_archived: true });
    await ask('POST', '/bookmarks/', { url: 'https://b.example/', shared: true, unread: true });
    await ask('POST', '/bookmarks/', { url: 'https://c.example/' });
    const count = async (query: string) => (await ask('GET', `/bookmarks/shared/${query}`)).body.count;
    expect([await count(''), await count('?unread=yes'), await count('?q=a.ex')]).toEqual([2, 1, 1]);
  });

  test.each([
    ['bundle=1', 'bundle'],
    ['user=somebody', 'user'],
    ['added_since=yesterday', 'added_since'],
    ['modified_since=2026-13-01', 'modified_since'],
    ['added_since=2026-02-30', 'added_since'],
    ['sort=title_desc', 'sort'],
    ['sort=random', 'sort'],
    ['unread=maybe', 'unread'],
    ['shared=true', 'shared'],
    ['q=!other', 'q'],
    ['q=not !untagged', 'q'],
    ['q=!untagged !unread', 'q'],
    ['q=!untagged&shared=yes', 'q'],
    ['q=!untagged or title', 'q'],
    ['q=not #one or title', 'q'],
    ['q=not (a and b)', 'q'],
    ["q=not ''", 'q'],
    ['q=a or b or c or d or e or f or g or h or i or j or k', 'q'],
    ['q=(a or b) (c or d) (e or f) (g or h)', 'q'],
    [`q=${'not a '.repeat(11)}`, 'q'],
    ['q=(a', 'q'],
    ['q=a)', 'q'],
    ['q=a and', 'q'],
    ['q=or a', 'q'],
    ['q=not', 'q'],
    [`q=${'('.repeat(1_000)}`, 'q'],
    [`q=${'("'.repeat(4_000)}`, 'q'],
  ])('refuse the filter %.40s, because ignoring it would find too many bookmarks', async (query, field) => {
    const answer = await ask('GET', `/bookmarks/?${query.replaceAll('#', '%23')}`);
    expect(answer).toMatchObject({ status: 400, body: { [field]: [expect.any(String)] } });
  });
});

test('tags can be listed, found and created', async () => {
  const created = (await ask('POST', '/tags/', { name: 'Work' })).body;
  const date_added = expect.stringMatching(/\.\d{6}Z$/);
  expect(created).toEqual({ id: expect.any(Number), name: 'Work', date_added });
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

test('tags can be deleted, and searched by a part of their names', async () => {
  const { id } = (await ask('POST', '/bookmarks/', { url: WHOLE.url, tag_names: ['Work', 'Home'] })).body;
  const [work] = (await ask('GET', '/tags/?q=wor')).body.results;
  expect(work).toMatchObject({ name: 'Work' });
  expect(await ask('DELETE', `/tags/${work.id}/`)).toMatchObject({ status: 204, body: undefined });
  expect((await ask('GET', `/bookmarks/${id}/`)).body.tag_names).toEqual(['Home']);
  expect((await ask('DELETE', `/tags/${work.id}/`)).status).toBe(404);
});

test('there are no bundles, so their list is empty', async () => {
  expect((await ask('GET', '/bundles/')).body).toEqual({ count: 0, next: null, previous: null, results: [] });
  expect((await ask('GET', '/bundles/1/')).status).toBe(404);
});

test.each([
  ['', '/'],
  ['/', '/'],
  ['/bookmarks', '/'],
  ['/bookmarks?q=a%26b%20%23c&page=2', '/?q=a%26b+%23c'],
  ['/bookmarks/new?url=https%3A%2F%2Fa.example%2F&title=T', '/save?url=https%3A%2F%2Fa.example%2F&title=T'],
])("linkding's page %j redirects to the service's own page", async (path, page) => {
  const response = await fetch(`${service.origin}/compat/linkding${path}`, { redirect: 'manual' });
  expect([response.status, response.headers.get('location')]).toEqual([302, page]);
});

describe('a name of a tag with blanks', () => {
  const namesOf = async (id: number) => (await ask('GET', `/bookmarks/${id}/`)).body.tag_names;
  const ownNamesOf = async (id: number) =>
    (await user.post('/bookmarks/get', { id })).body.bookmarks[0].tags.map(
      ({ name }: { name: string }) => name,
    );
  const add = async (tags: string[]): Promise<number> =>
    (await user.post('/bookmarks/add', { url: 'https://a.example/', tags })).body.id;

  test('is written with hyphens, and understood so', async () => {
    const id = await add(['to do now', 'one']);
    expect(await namesOf(id)).toEqual(['one', 'to-do-now']);
    await ask('PUT', `/bookmarks/${id}/`, { url: 'https://a.example/', tag_names: ['TO-DO-NOW', 'two'] });
    expect(await ownNamesOf(id)).toEqual(['to do now', 'two']);
    for (const q of ['%23to-do-now', 'not%20%23one%20%23To-do-now'])
      expect((await ask('GET', `/bookmarks/?q=${q}`)).body.count).toBe(1);
    const { body } = await ask('POST', '/tags/', { name: 'to-do-now' });
    expect(body.name).toBe('to-do-now');
    const tags = (await ask('GET', '/tags/')).body.results;
    expect(tags.map(({ name }: { name: string }) => name)).toEqual(['one', 'to-do-now', 'two']);
    expect(tags).toContainEqual(body);
    expect((await ask('GET', `/tags/${body.id}/`)).body).toEqual(body);
  });

  test('is written as it is if another tag has the name with hyphens, or would be written like it', async () => {
    const id = await add(['a b', 'a-b', 'c d-e', 'c-d e', 'f g']);
    const shown = ['a b', 'a-b', 'c d-e', 'c-d e', 'f-g'];
    expect(await namesOf(id)).toEqual(shown);
    await ask('PATCH', `/bookmarks/${id}/`, { tag_names: shown });
    expect(await ownNamesOf(id)).toEqual(['a b', 'a-b', 'c d-e', 'c-d e', 'f g']);
  });

  test('does not come back through a request that does not name it, if it was renamed meanwhile', async () => {
    const id = await add(['two words']);
    const { tags } = (await user.post('/tags/list')).body;
    expect(await namesOf(id)).toEqual(['two-words']);
    await user.post('/tags/update', { id: tags[0].id, name: 'three words now' });
    await ask('PATCH', `/bookmarks/${id}/`, { title: 'T' });
    await ask('POST', `/bookmarks/${id}/archive/`);
    expect(await namesOf(id)).toEqual(['three-words-now']);
    expect((await user.post('/tags/list')).body.tags).toMatchObject([
      { name: 'archived' },
      { name: 'three words now' },
    ]);
  });

  test('is one of several in a name with commas, unless a tag has that name', async () => {
    await user.post('/tags/create', { name: 'red, green' });
    const { id } = (
      await ask('POST', '/bookmarks/', {
        url: 'https://b.example/',
        tag_names: ['one,two words, ', 'red, green'],
      })
    ).body;
    expect(await ownNamesOf(id)).toEqual(['one', 'red, green', 'two words']);
  });
});

describe('requests as clients send them', () => {
  const send = (method: string, path: string, init: RequestInit & { duplex?: 'half' } = {}, headers = {}) =>
    fetch(`${service.origin}/compat/linkding${path}`, {
      ...init,
      method,
      headers: { authorization: `Token ${user.token}`, ...headers },
    });
  const JSON_TYPE = { 'content-type': 'application/json' };

  test.each([
    ['a JSON content type and no body', {}],
    ['an empty chunked body', { body: new Blob([]).stream(), duplex: 'half' as const }],
  ])('may have %s', async (_, init) => {
    const { id } = (await ask('POST', '/bookmarks/', WHOLE)).body;
    const path = `/api/bookmarks/${id}/`;
    const read = () => ('body' in init ? { ...init, body: new Blob([]).stream() } : init);
    expect((await send('POST', `${path}archive/`, read(), JSON_TYPE)).status).toBe(204);
    expect((await send('POST', `${path}unarchive/`, read(), JSON_TYPE)).status).toBe(204);
    expect((await send('DELETE', path, read(), JSON_TYPE)).status).toBe(204);
    expect((await send('GET', '/api/bookmarks/?limit=1', {}, JSON_TYPE)).status).toBe(200);
    const refused = await send('POST', '/api/bookmarks/', read(), JSON_TYPE);
    expect([refused.status, await refused.json()]).toEqual([400, { url: ['is required'] }]);
  });

  test('may omit the slash at the end of a path', async () => {
    const created = await send('POST', '/api/bookmarks', { body: JSON.stringify(WHOLE) }, JSON_TYPE);
    const { id } = (await created.json()) as { id: number };
    for (const path of [
      'bookmarks/check?url=x://',
      'bookmarks/archived',
      'bookmarks/shared',
      'tags',
      'bundles',
    ])
      expect([path, (await send('GET', `/api/${path}`)).status]).toEqual([
        path,
        path.includes('x:') ? 400 : 200,
      ]);
    expect((await send('GET', '/api/user/profile')).status).toBe(200);
    expect((await send('POST', `/api/bookmarks/${id}/archive`)).status).toBe(204);
    expect((await send('DELETE', `/api/bookmarks/${id}`)).status).toBe(204);
  });

  test.each(['Bearer', 'bearer', 'token', 'TOKEN'])('may present the token as %s', async (scheme) => {
    const read = (token: string) =>
      send('GET', '/api/bookmarks/', {}, { authorization: `${scheme} ${token}` });
    expect((await read(user.token)).status).toBe(200);
    expect((await read(`${user.token}x`)).status).toBe(401);
    expect((await send('GET', '/api/bookmarks/', {}, { authorization: 'Basic abc' })).status).toBe(401);
  });

  /** The fields of `WHOLE` as a form. */
  const fillForm = <Form extends FormData | URLSearchParams>(
    form: Form,
    tags: string,
    ...names: string[]
  ): Form => {
    for (const [name, value] of Object.entries(WHOLE))
      if (name !== 'tag_names') form.set(name, String(value));
    for (const name of names) form.append(tags, name);
    return form;
  };

  test.each([
    ['multipart', () => fillForm(new FormData(), 'tag_names', 'one', 'two words')],
    ['multipart', () => fillForm(new FormData(), 'tag_names', 'one,two words')],
    ['multipart', () => fillForm(new FormData(), 'tag_names[]', 'one', 'two words')],
    ['form', () => fillForm(new URLSearchParams(), 'tag_names', 'one', 'two words')],
    ['form', () => fillForm(new URLSearchParams(), 'tag_names[0]', 'one, two words')],
  ])('may have a %s body', async (_, makeBody) => {
    const created = await send('POST', '/api/bookmarks/', { body: makeBody() });
    const body = (await created.json()) as { id: number };
    expect([created.status, body]).toMatchObject([201, SHOWN]);
    const unread = new FormData();
    unread.set('unread', 'no');
    const patched = await send('PATCH', `/api/bookmarks/${body.id}/`, { body: unread });
    expect(await patched.json()).toMatchObject({ ...SHOWN, unread: false });
    const name = new FormData();
    name.set('name', 'two-words');
    expect((await send('POST', '/api/tags/', { body: name })).status).toBe(201);
  });

  test('with a form may have fields only, 64 KiB, and a scope that allows it', async () => {
    const withFile = fillForm(new FormData(), 'tag_names', 'one');
    withFile.set('file', new Blob(['text']), 'a.txt');
    const refused = await send('POST', '/api/bookmarks/', { body: withFile });
    expect([refused.status, await refused.json()]).toEqual([400, { file: ['files are not accepted'] }]);
    const long = fillForm(new FormData(), 'tag_names');
    long.set('ignored', 'x'.repeat(65_536));
    const tooLong = await send('POST', '/api/bookmarks/', { body: long });
    expect([tooLong.status, await tooLong.json()]).toEqual([400, { body: ['is too large'] }]);
    const type = { 'content-type': 'multipart/form-data; boundary=x' };
    for (const body of ['--x', '--x\r\n\r\n', 'url=https://a.example/']) {
      const malformed = await send('POST', '/api/bookmarks/', { body }, type);
      expect([malformed.status, await malformed.json()]).toEqual([400, { body: ['is not a valid form'] }]);
    }
    for (const [name, value] of [
      ['unread', 'perhaps'],
      ['url', 'x'],
    ] as const) {
      const form = fillForm(new URLSearchParams(), 'tag_names');
      form.set(name, value);
      const wrong = await send('POST', '/api/bookmarks/', { body: form });
      expect([wrong.status, await wrong.json()]).toEqual([400, { [name]: [expect.any(String)] }]);
    }
    const read = await service.token(user.id, 'read');
    const body = fillForm(new URLSearchParams(), 'tag_names');
    const forbidden = await send('POST', '/api/bookmarks/', { body }, { authorization: `Token ${read}` });
    expect([forbidden.status, await forbidden.json()]).toEqual([403, { detail: expect.any(String) }]);
    expect((await ask('GET', '/bookmarks/')).body.count).toBe(0);
    const outside = await fetch(`${service.origin}/api/v1/bookmarks/add`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user.token}` },
      body,
    });
    expect(outside.status).toBe(400);
  });
});

describe("errors of linkding's API", () => {
  test.each([
    ['POST', '/bookmarks/', {}, { url: ['is required'] }],
    ['POST', '/bookmarks/', { url: 'ftp://x/' }, { url: [expect.any(String)] }],
    ['POST', '/bookmarks/', { url: WHOLE.url, unread: 'maybe' }, { unread: [expect.any(String)] }],
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
