import { describe, expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';
import { until } from './support/until.ts';

const service = useService();
const other = useService({ importInlineBytes: 0 }, { beside: service });

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

const count = async (user: TestUser): Promise<number> => (await user.post('/bookmarks/search')).body.total;

test('a repeat with the same key and body gets the first response, and a bookmark is added once', async () => {
  const user = await service.user();
  const first = await user.post('/bookmarks/add', { url: 'http://a/', tags: ['x'] }, keyed('k'));
  await user.post('/bookmarks/edit', { id: first.body.id, title: 'changed since' });
  const again = await user.post('/bookmarks/add', { url: 'http://a/', tags: ['x'] }, keyed('k'));
  expect([first.status, again.status]).toEqual([200, 200]);
  expect(again.text).toBe(first.text);
  expect(await count(user)).toBe(1);
});

test('simultaneous repeats on two replicas add once and get the same response', async () => {
  const user = await service.user();
  const body = { url: 'http://a/' };
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? service : other).post('/bookmarks/add', body, { token: user.token, ...keyed('storm') }),
    ),
  );
  expect(new Set(responses.map((response) => response.text)).size).toBe(1);
  expect(responses[0]?.status).toBe(200);
  expect(await count(user)).toBe(1);
});

test('another body or path with a used key is a VALIDATION_ERROR and changes nothing', async () => {
  const user = await service.user();
  // `/bookmarks/add` and `/tags/create` both accept this body, because they ignore unknown fields.
  const same = { url: 'http://a/', name: 'x' };
  await user.post('/bookmarks/add', same, keyed('k'));
  const body = await user.post('/bookmarks/add', { url: 'http://b/' }, keyed('k'));
  const path = await user.post('/tags/create', same, keyed('k'));
  for (const response of [body, path]) {
    expect(response.status).toBe(400);
    expect(response.body).toEqual({
      code: 'VALIDATION_ERROR',
      error: 'Idempotency-Key: was used for another request',
    });
  }
  expect(await count(user)).toBe(1);
  expect((await user.post('/tags/list')).body.tags).toEqual([]);
  const session = await service.session();
  const { id } = (await session.post('/tokens/create', { name: 'mine' })).body;
  await session.post('/tokens/revoke', { id }, keyed('k'));
  // The parsed fields are the same, so only the path differs.
  expect((await session.post('/sessions/revoke', { id }, keyed('k'))).body).toMatchObject({
    error: 'Idempotency-Key: was used for another request',
  });
});

test('a body that says the same in another way is the same request', async () => {
  const user = await service.user();
  const first = await user.post('/bookmarks/add', { url: 'http://a/', tags: ['x'] }, keyed('k'));
  const body = {
    on_duplicate: 'add',
    tags: [' x ', 'X'],
    comment: '',
    title: null,
    url: ' http://a/',
    more: 1,
  };
  expect((await user.post('/bookmarks/add', body, keyed('k'))).text).toBe(first.text);
  expect(await count(user)).toBe(1);
});

describe('each write that returns no secret', () => {
  /** Creates what a write needs, such as a bookmark. Returns the path and the body of that write. */
  type Write = (user: TestUser) => Promise<[path: string, body: object]>;
  const bookmark = async (user: TestUser) =>
    (await user.post('/bookmarks/add', { url: 'http://a/', tags: ['x', 'y'] })).body;
  const WRITES: Record<string, Write> = {
    'an edit': async (user) => ['/bookmarks/edit', { id: (await bookmark(user)).id, title: 'x' }],
    'an edit of several': async (user) => [
      '/bookmarks/edit',
      { ids: [(await bookmark(user)).id], add_tags: ['z'] },
    ],
    'a deletion': async (user) => ['/bookmarks/delete', { id: (await bookmark(user)).id }],
    'a move to the trash': async (user) => [
      '/bookmarks/delete',
      { id: (await bookmark(user)).id, trash: true },
    ],
    'a deletion of several': async (user) => ['/bookmarks/delete', { ids: [(await bookmark(user)).id] }],
    'a restoration': async (user) => {
      const { id } = await bookmark(user);
      await user.post('/bookmarks/delete', { id, trash: true });
      return ['/trash/restore', { ids: [id] }];
    },
    'a deletion from the trash': async (user) => {
      await user.post('/bookmarks/delete', { id: (await bookmark(user)).id, trash: true });
      return ['/trash/delete', { all: true }];
    },
    'a rename of a tag': async (user) => [
      '/tags/update',
      { id: (await bookmark(user)).tags[0].id, name: 'new' },
    ],
    'a deletion of a tag': async (user) => ['/tags/delete', { id: (await bookmark(user)).tags[0].id }],
    'a rename of a path': async (user) => {
      await bookmark(user);
      return ['/tags/update', { path: 'x', name: 'x/y', with_children: true }];
    },
    'a deletion of a path': async (user) => {
      await bookmark(user);
      return ['/tags/delete', { path: 'X', with_children: true }];
    },
    'a merge of tags': async (user) => {
      const [one, two] = (await bookmark(user)).tags;
      return ['/tags/merge', { id: one.id, into_id: two.id }];
    },
    'a revocation of a token': async (user) => [
      '/tokens/revoke',
      { id: (await user.post('/tokens/create', { name: 'mine' })).body.id },
    ],
    'a revocation of a session': async (user) => {
      await service.session(user.email);
      const { sessions } = (await user.post('/sessions/list')).body;
      return [
        '/sessions/revoke',
        { id: sessions.find((each: { is_current: boolean }) => !each.is_current).id },
      ];
    },
    'a revocation of the other sessions': async () => ['/sessions/revoke-others', {}],
  };

  test.each(Object.entries(WRITES))(
    '%s is executed once, and its repeats get the same response',
    async (_, write) => {
      const user = await service.session();
      const [path, body] = await write(user);
      const responses = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          (n % 2 ? service : other).post(path, body, { token: user.token, ...keyed('once') }),
        ),
      );
      expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
      expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
      const reused = await user.post('/tags/create', { name: 'other' }, keyed('once'));
      expect(reused.body).toMatchObject({ error: 'Idempotency-Key: was used for another request' });
      expect(await findFaults(service.database.url)).toEqual([]);
    },
  );

  test('a repeated edit does not overwrite a newer one', async () => {
    const user = await service.user();
    const { id } = await bookmark(user);
    const first = await user.post('/bookmarks/edit', { id, title: 'first' }, keyed('k'));
    await user.post('/bookmarks/edit', { id, title: 'newer' });
    expect((await user.post('/bookmarks/edit', { id, title: 'first' }, keyed('k'))).text).toBe(first.text);
    expect((await user.post('/bookmarks/get', { id })).body.bookmarks[0].title).toBe('newer');
  });

  test('a repeat with a token that was revoked after the first request is INVALID_TOKEN', async () => {
    const user = await service.user();
    const { id } = await bookmark(user);
    await user.post('/bookmarks/delete', { id }, keyed('k'));
    await runOn(service.database.url, `delete from tokens where user_id = ${user.id}`);
    expect((await user.post('/bookmarks/delete', { id }, keyed('k'))).body.code).toBe('INVALID_TOKEN');
  });
});

test('keys of different users are independent', async () => {
  const [one, two] = [await service.user(), await service.user()];
  await one.post('/bookmarks/add', { url: 'http://a/' }, keyed('k'));
  expect((await two.post('/bookmarks/add', { url: 'http://b/' }, keyed('k'))).status).toBe(200);
});

test('a tag is created once, and its repeat is no error', async () => {
  const user = await service.user();
  const responses = await Promise.all(
    Array.from({ length: 5 }, () => user.post('/tags/create', { name: 'Once' }, keyed('tag'))),
  );
  expect(responses.map((response) => response.status)).toEqual([200, 200, 200, 200, 200]);
  expect(new Set(responses.map((response) => response.text)).size).toBe(1);
  expect(Object.keys(responses[0]?.body)).toEqual(['id', 'name', 'created_at']);
});

test.each([
  ['small', () => service],
  ['staged', () => other],
])('repeating a %s replace with a key does not delete what was added since', async (_, replica) => {
  const user = await service.user();
  const options = { token: user.token, ...keyed('import') };
  const body = { mode: 'replace', bookmarks: [{ url: 'http://a/' }, { url: 'http://b/' }] };
  const first = await replica().post('/import', body, options);
  expect(first.body).toEqual({ imported: 2, skipped: 0, errors: [] });
  await user.post('/bookmarks/add', { url: 'http://c/' });
  const again = await replica().post('/import', body, options);
  expect(again.text).toBe(first.text);
  expect(await count(user)).toBe(3);
  const reused = await replica().post('/import', { bookmarks: [] }, options);
  expect(reused.body.code).toBe('VALIDATION_ERROR');
});

/** Returns the body of an import. Its errors take several reads, and have characters of several bytes. */
const bodyWithErrors = () => ({
  bookmarks: [
    { url: 'http://a/' },
    ...Array.from({ length: 300 }, (_, n) => ({ url: `${n} ${'ü😀'.repeat(90)}` })),
  ],
});

const keptErrors = ({ id }: TestUser) =>
  runOn(
    service.database.url,
    `select octet_length(i.errors) as bytes, k.bytes - octet_length(k.response) - octet_length(k.key) - 100 as counted
    from imports i
    left join idempotency_keys k on k.user_id = i.user_id and k.import_id = i.id
    where i.user_id = ${id} and i.errors is not null`,
  );

test.each([
  ['small', () => service],
  ['staged', () => other],
])('the errors of a %s import with a key are stored once, and every repeat gets them', async (_, replica) => {
  const user = await service.user();
  const options = { token: user.token, ...keyed('import') };
  const first = await replica().post('/import', bodyWithErrors(), options);
  expect(first.body.imported).toBe(1);
  expect(first.body.errors).toHaveLength(300);
  for (const each of [service, other, service, other])
    expect((await each.post('/import', bodyWithErrors(), options)).text).toBe(first.text);
  const bytes = String(Buffer.byteLength(JSON.stringify(first.body.errors)) - 2);
  expect(await keptErrors(user)).toEqual([{ bytes: Number(bytes), counted: bytes }]);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('simultaneous imports with the same key, small and staged, happen once and get the same response', async () => {
  const user = await service.user();
  const options = { token: user.token, ...keyed('storm') };
  const responses = await Promise.all(
    [service, other, service, service].map((each) => each.post('/import', bodyWithErrors(), options)),
  );
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
  expect(responses[0]!.body.imported).toBe(1);
  expect(await keptErrors(user)).toHaveLength(1);
});

test.each([
  ['small', () => service],
  ['staged', () => other],
])(
  'the errors of a %s import without a key are not stored once its response was sent',
  async (_, replica) => {
    const user = await service.user();
    const { body } = await replica().post('/import', bodyWithErrors(), { token: user.token });
    expect(body.errors).toHaveLength(300);
    await until(async () => (await keptErrors(user)).length === 0);
  },
);

test('a refused request does not use up its key', async () => {
  const user = await service.user();
  const { freeBookmarkLimit } = service.context.config;
  Object.assign(service.context.config, { freeBookmarkLimit: 0 });
  const refused = await user.post('/bookmarks/add', { url: 'http://a/' }, keyed('k'));
  Object.assign(service.context.config, { freeBookmarkLimit });
  expect(refused.body.code).toBe('LIMIT_EXCEEDED');
  expect((await user.post('/bookmarks/add', { url: 'http://a/' }, keyed('k'))).status).toBe(200);
});

test('a key is kept for 24 hours', async () => {
  const user = await service.user();
  await user.post('/bookmarks/add', { url: 'http://a/' }, keyed('k'));
  const age = (hours: string) =>
    runOn(
      service.database.url,
      `update idempotency_keys set created_at = now() - interval '${hours}' where user_id = ${user.id}`,
    );
  await age('23 hours 59 minutes');
  expect((await user.post('/bookmarks/add', { url: 'http://other/' }, keyed('k'))).status).toBe(400);
  expect(await count(user)).toBe(1);
  await age('24 hours 1 minute');
  await user.post('/bookmarks/add', { url: 'http://other/' }, keyed('k'));
  expect(await count(user)).toBe(2);
});

test.each(['', 'a b', 'ä', 'x'.repeat(256)])('a malformed key is a VALIDATION_ERROR: %j', async (key) => {
  const user = await service.user();
  for (const path of ['/bookmarks/add', '/import']) {
    const headers = { 'idempotency-key': Buffer.from(key).toString('latin1') };
    const response = await user.post(path, { url: 'http://a/', bookmarks: [] }, { headers });
    expect(response.body).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(response.body.error).toMatch(/^Idempotency-Key: /);
  }
  expect(await count(user)).toBe(0);
});
