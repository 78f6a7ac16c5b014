import { beforeEach, describe, expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdAccount, untilBlocked } from './support/sessions.ts';

// Section 4.2 of docs/contract.md: /bookmarks/batch.

const CAP = 6;
const service = useService({ freeBookmarkLimit: CAP });
const second = useService({ freeBookmarkLimit: CAP }, { beside: service });
let user: TestUser;

beforeEach(async () => {
  user = await service.user();
});

type Operation = Record<string, unknown>;

const url = (name: unknown) => `https://example.org/${name}`;
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

const batch = async (operations: unknown[], more: object = {}, owner = user) =>
  owner.post('/bookmarks/batch', { operations, ...more });
const resultsOf = async (operations: unknown[], owner = user) => {
  const { body, text } = await batch(operations, {}, owner);
  expect(body.results, text).toHaveLength(operations.length);
  return body.results;
};
const add = async (fields: object = {}, owner = user) =>
  (await owner.post('/bookmarks/add', { url: url('a'), ...fields })).body;
const readAll = async (owner = user) => (await owner.post('/export')).body.bookmarks;
const total = async (owner = user): Promise<number> => (await readAll(owner)).length;

/** Everything that a write might change. */
const readRows = (owner: TestUser) =>
  runOn(
    service.database.url,
    ['accounts', 'bookmarks', 'tags', 'trash', 'changes', 'idempotency_keys']
      .map((table) => `select '${table}', to_jsonb(t) as row from ${table} t where user_id = ${owner.id}`)
      .join(' union all ')
      .concat(' order by 1, 2'),
  );

test('runs adds, edits and deletions in order, and returns the response of each', async () => {
  const [one, two, three] = [await add(), await add({ tags: ['x'] }), await add()];
  const { status, body } = await batch([
    { do: 'add', url: url('new'), title: ' T ', tags: ['x', 'y'], created_at: '2020-01-02' },
    { do: 'edit', id: one.id, title: 'first' },
    { do: 'edit', id: one.id, comment: 'second', tags: ['z'] },
    { do: 'delete', id: two.id, if_updated_at: two.updated_at },
    { do: 'delete', id: three.id, trash: true },
    { do: 'add', url: url('new'), on_duplicate: 'return' },
  ]);
  expect(status).toBe(200);
  const [added, first, edited, deleted, trashed, returned] = body.results;
  expect(added).toMatchObject({ title: 'T', created_at: '2020-01-02T00:00:00.000Z' });
  expect(Object.keys(first)).toEqual(['id', 'url', 'title', 'comment', 'tags', 'updated_at']);
  expect([first.title, edited.title, edited.comment]).toEqual(['first', 'first', 'second']);
  expect([deleted, trashed]).toEqual([{ deleted: true }, { deleted: true }]);
  expect(returned).toEqual(added);
  expect(body.results).toHaveLength(6);
  expect(await readAll()).toEqual([{ ...edited, created_at: one.created_at }, added]);
  expect((await user.post('/trash/list')).body.bookmarks).toMatchObject([{ id: three.id }]);
  expect(await findFaults(service.database.url)).toEqual([]);
});

/** Operations of which about half are refused, each for another reason. They refer to two existing bookmarks. */
const mixed = (one: Operation, two: Operation): Operation[] => [
  { do: 'add', url: 'javascript:void(0)' },
  { do: 'add', url: url('b'), tags: ['x', 'new'], key: 'k1' },
  { do: 'edit', id: one.id, title: 'x', if_updated_at: '2020-01-01' },
  { do: 'edit', id: one.id, if_updated_at: null },
  { do: 'edit', id: one.id, title: 'edited', if_updated_at: one.updated_at, key: 'k2' },
  { do: 'edit', id: one.id, title: 'again', if_updated_at: one.updated_at },
  { do: 'edit', id: one.id, tags: ['x', 'X', 'y'], title: null },
  { do: 'edit', id: 2 ** 50, title: 'x' },
  { do: 'add', url: url('b'), on_duplicate: 'error' },
  { do: 'add', url: url('c'), key: 'k2' },
  { do: 'add', url: url('c'), key: 'not visible' },
  { do: 'delete', id: two.id, if_updated_at: '2020-01-01' },
  { do: 'delete', id: two.id, trash: true },
  { do: 'delete', id: two.id },
  { do: 'edit', id: two.id, title: 'x' },
  ...Array.from({ length: CAP }, (_, n) => ({ do: 'add', url: url(`many ${n}`), tags: [`tag ${n}`] })),
  { do: 'add', url: url('b'), on_duplicate: 'return' },
  { do: 'delete' },
  { do: 'edit', id: 'a' },
];

const PATHS: Record<string, string> = {
  add: '/bookmarks/add',
  edit: '/bookmarks/edit',
  delete: '/bookmarks/delete',
};

test('each operation does what the same request does alone: a refused one changes nothing and stops none', async () => {
  /** Makes the account of a test, and returns its operations. */
  const begin = async () => {
    const owner = await service.user();
    const [one, two] = [await add({ tags: ['x'] }, owner), await add({ tags: ['y'] }, owner)];
    return { owner, operations: mixed(one, two) };
  };
  const alone = await begin();
  const responses: unknown[] = [];
  for (const { do: kind, key, ...body } of alone.operations) {
    const options = key === undefined ? {} : keyed(key as string);
    const { status, body: response } = await alone.owner.post(PATHS[kind as string]!, body, options);
    responses.push(status === 200 ? response : { ...response, error: expect.any(String) });
  }
  const together = await begin();
  const results = await resultsOf(together.operations, together.owner);
  const codes = results.map(({ code }: { code?: string }) => code);
  expect(codes).toEqual(responses.map((response) => (response as { code?: string }).code));
  expect(new Set(codes)).toEqual(
    new Set([undefined, 'VALIDATION_ERROR', 'CONFLICT', 'NOT_FOUND', 'LIMIT_EXCEEDED']),
  );
  const shape = async (owner: TestUser) => {
    const { tags } = (await owner.post('/tags/list')).body;
    const bookmarks = await readAll(owner);
    return [
      bookmarks.map(({ id: _, tags: own, created_at: __, updated_at: ___, ...fields }: Operation) => ({
        ...fields,
        tags: (own as { name: string }[]).map(({ name }) => name),
      })),
      tags.map(({ name, bookmark_count }: Operation) => [name, bookmark_count]),
      (await owner.post('/trash/list')).body.bookmarks.length,
    ];
  };
  expect(await shape(together.owner)).toEqual(await shape(alone.owner));
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('an operation with the fields of several bookmarks is refused', async () => {
  const { id } = await add();
  for (const [name, value] of [
    ['ids', [id]],
    ['items', []],
    ['add_tags', ['x']],
    ['remove_tags', ['x']],
  ] as const)
    expect(
      await resultsOf([
        { do: 'edit', id, [name]: value },
        { do: 'delete', id, [name]: value },
      ]),
    ).toEqual(Array(2).fill({ code: 'VALIDATION_ERROR', error: `${name}: cannot be given in a batch` }));
  expect(await total()).toBe(1);
});

test('a malformed operation is a VALIDATION_ERROR in its place', async () => {
  const results = await resultsOf([null, 'a', [], {}, { do: 'import' }, { do: 'add', url: url(1) }]);
  expect(results.map(({ error }: { error?: string }) => error)).toEqual([
    'expected an object',
    'expected an object',
    'expected an object',
    'do: expected "add" or "edit" or "delete"',
    'do: expected "add" or "edit" or "delete"',
    undefined,
  ]);
});

describe('with atomic', () => {
  test('all operations happen if none is refused', async () => {
    const { id } = await add();
    const { body } = await batch([{ do: 'delete', id }, ...Array(CAP).fill({ do: 'add', url: url(1) })], {
      atomic: true,
    });
    expect(body.results).toHaveLength(CAP + 1);
    expect(await total()).toBe(CAP);
  });

  test.each([
    ['an unknown id', { do: 'delete', id: 2 ** 50 }, 404, 'NOT_FOUND', 'the bookmark does not exist'],
    ['a wrong field', { do: 'add', url: 'a' }, 400, 'VALIDATION_ERROR', 'url: expected an absolute url'],
    [
      'a used key',
      { do: 'add', url: url(1), key: 'used' },
      400,
      'VALIDATION_ERROR',
      'Idempotency-Key: was used',
    ],
    [
      'a saved url',
      { do: 'add', url: url('a'), on_duplicate: 'error' },
      400,
      'VALIDATION_ERROR',
      'url: another',
    ],
  ])('%s is the error of the response, and nothing has changed', async (_, refused, status, code, error) => {
    const { id, updated_at } = await add({}, user);
    await user.post('/bookmarks/edit', { id, comment: 'c' }, keyed('used'));
    const before = await readRows(user);
    const operations = [
      { do: 'add', url: url('b'), tags: ['late'], key: 'free' },
      { do: 'edit', id, title: 'late', tags: ['late'] },
      { do: 'delete', id, trash: true },
      { do: 'add', url: url('a') },
      refused,
      { do: 'edit', id, if_updated_at: updated_at },
    ];
    const response = await batch(operations, { atomic: true });
    expect(response).toMatchObject({ status, body: { code } });
    expect(response.body.error).toContain(`operations[4]: ${error}`);
    expect(response.body.results).toBeUndefined();
    expect(await readRows(user)).toEqual(before);
    // The key of an operation that was undone is free.
    expect(await resultsOf([{ do: 'add', url: url('c'), key: 'free' }])).toMatchObject([{ url: url('c') }]);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('the cap of the free tier refuses the whole batch', async () => {
    const adds = Array.from({ length: CAP + 1 }, (_, n) => ({ do: 'add', url: url(n), tags: [`${n}`] }));
    expect(await batch(adds, { atomic: true })).toMatchObject({
      status: 403,
      body: { code: 'LIMIT_EXCEEDED', error: `operations[${CAP}]: the free tier holds no more bookmarks` },
    });
    expect([await total(), (await user.post('/tags/list')).body.tags]).toEqual([0, []]);
  });
});

describe('keys', () => {
  test('a key means the same alone, in a batch, and in another batch', async () => {
    const alone = await user.post('/bookmarks/add', { url: url(1), tags: ['x', 'y'] }, keyed('one'));
    const operation = { tags: ['x', 'y'], comment: '', title: ' ', url: ` ${url(1)}`, key: 'one', do: 'add' };
    expect(await resultsOf([operation, { do: 'add', url: url(2), key: 'two' }, operation])).toMatchObject([
      alone.body,
      { url: url(2) },
      alone.body,
    ]);
    const again = await user.post('/bookmarks/add', { url: url(2), on_duplicate: 'add' }, keyed('two'));
    const [, repeated] = await resultsOf([operation, { do: 'add', url: url(2), key: 'two' }]);
    expect(again.body).toEqual(repeated);
    expect(await total()).toBe(2);
    const { id } = alone.body;
    const edited = await resultsOf([{ do: 'edit', id, title: 'new', key: 'edit' }]);
    expect((await user.post('/bookmarks/edit', { title: 'new', id }, keyed('edit'))).body).toEqual(edited[0]);
    const deletion = { id, if_updated_at: `${edited[0].updated_at.slice(0, -1)}+00:00` };
    await user.post('/bookmarks/delete', deletion, keyed('delete'));
    const deleted = { do: 'delete', id, if_updated_at: edited[0].updated_at, trash: false, key: 'delete' };
    expect(await resultsOf([deleted, { ...deleted, key: undefined }])).toMatchObject([
      { deleted: true },
      { code: 'NOT_FOUND' },
    ]);
  });

  test('a key with other fields, or for another operation, is a VALIDATION_ERROR in its place', async () => {
    const [{ id }] = await resultsOf([{ do: 'add', url: url(1), key: 'k' }]);
    const results = await resultsOf([
      { do: 'add', url: url(1), title: 'other', key: 'k' },
      { do: 'edit', id, key: 'k' },
      { do: 'delete', id, key: 'k' },
      { do: 'edit', id, key: 'same' },
      { do: 'delete', id, key: 'same' },
    ]);
    expect(results.map(({ code }: { code?: string }) => code)).toEqual([
      ...Array(3).fill('VALIDATION_ERROR'),
      undefined,
      'VALIDATION_ERROR',
    ]);
    expect(await total()).toBe(1);
  });

  test('the same batch sent many times to two replicas at once happens once', async () => {
    const { id } = await add({ tags: ['x'] });
    const operations = [
      { do: 'add', url: url(1), key: '1' },
      { do: 'edit', id, title: 'once', key: '2' },
      { do: 'add', url: url(2), tags: ['x'], key: '3' },
      { do: 'delete', id, key: '4' },
    ];
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 ? service : second).post('/bookmarks/batch', { operations }, { token: user.token }),
      ),
    );
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(responses[0]!.body.results).toMatchObject([
      { url: url(1) },
      { title: 'once' },
      { url: url(2) },
      { deleted: true },
    ]);
    expect(await total()).toBe(2);
  });

  test('without room for its response, an operation with a key is RATE_LIMITED in its place', async () => {
    await runOn(
      service.database.url,
      `update accounts set kept_bytes = 16777216 - 524288 where user_id = ${user.id}`,
    );
    const operations = [1, 2, 3].map((n) => ({ do: 'add', url: url(n), key: `${n}` }));
    expect(await resultsOf([...operations, { do: 'add', url: url(4) }, operations[0]])).toMatchObject([
      { url: url(1) },
      { code: 'RATE_LIMITED' },
      { code: 'RATE_LIMITED' },
      { url: url(4) },
      { url: url(1) },
    ]);
    expect(await total()).toBe(2);
    await runOn(
      service.database.url,
      `update accounts set kept_bytes = kept_bytes - 16252928 where user_id = ${user.id}`,
    );
    expect(await resultsOf(operations)).toMatchObject([{ url: url(1) }, { url: url(2) }, { url: url(3) }]);
  });

  test('the header Idempotency-Key is refused', async () => {
    const response = await user.post(
      '/bookmarks/batch',
      { operations: [{ do: 'add', url: url(1) }] },
      keyed('k'),
    );
    expect(response.body).toEqual({
      code: 'VALIDATION_ERROR',
      error: 'Idempotency-Key: give each operation a key of its own',
    });
    expect(await total()).toBe(0);
  });
});

test('takes 1 to 500 operations, and counts as one request', async () => {
  const premium = await service.user({ premium: true });
  for (const operations of [undefined, {}, [], Array(501).fill({ do: 'add', url: url(1) })])
    expect((await premium.post('/bookmarks/batch', { operations })).body.code).toBe('VALIDATION_ERROR');
  const before = (await premium.post('/user/profile')).headers.get('x-ratelimit-remaining');
  const adds = Array.from({ length: 500 }, (_, n) => ({ do: 'add', url: url(n), tags: [`tag ${n % 70}`] }));
  const response = await batch(adds, {}, premium);
  expect(response.body.results).toHaveLength(500);
  expect(Number(response.headers.get('x-ratelimit-remaining'))).toBe(Number(before) - 1);
  expect((await readAll(premium)).map((bookmark: { url: string }) => bookmark.url)).toEqual(
    adds.map((operation) => operation.url),
  );
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('at most 10,000 tags in all', async () => {
  const user = await service.user({ premium: true });
  const tags = Array.from({ length: 100 }, (_, n) => `tag ${n}`);
  const add = { do: 'add', url: 'https://example.org/', tags };
  const most = Array.from({ length: 100 }, () => add);
  const one = { ...add, tags: ['one more'] };
  expect(await user.post('/bookmarks/batch', { operations: [...most, one] })).toMatchObject({
    status: 400,
    body: { code: 'VALIDATION_ERROR', error: 'operations: at most 10000 tags in all' },
  });
  const { results } = (await user.post('/bookmarks/batch', { operations: most })).body;
  expect(results.filter((each: object) => 'code' in each)).toEqual([]);
  expect(results).toHaveLength(100);
});

test('a body of more than 1 MiB is refused', async () => {
  const comment = 'x'.repeat(10_000);
  const operations = (count: number) => Array(count).fill({ do: 'edit', id: 1, comment });
  expect((await batch(operations(104))).status).toBe(200);
  expect((await batch(operations(106))).body).toMatchObject({ error: 'body: is too large' });
});

test('the cap is exact while batches, adds and deletions race', async () => {
  const adds = Array.from({ length: 4 }, (_, n) => ({ do: 'add', url: url(n) }));
  const responses = await Promise.all(
    [service, second, service, second].map((at) =>
      at.post('/bookmarks/batch', { operations: adds }, { token: user.token }),
    ),
  );
  const results = responses.flatMap(({ body }) => body.results);
  expect(results.filter(({ id }) => id)).toHaveLength(CAP);
  expect(await total()).toBe(CAP);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('an add wakes all polls, an edit or a deletion those of changes, and a refusal none', async () => {
  await using own = await startService({ syncWaitSeconds: 60 });
  const owner = await own.user();
  const { notifier } = own.context.coordination;
  const notified: string[] = [];
  const notify = notifier.notify.bind(notifier);
  notifier.notify = (channel) => {
    notified.push(channel);
    notify(channel);
  };
  const take = () => notified.splice(0);
  const [{ id }] = await resultsOf(
    [
      { do: 'add', url: url(1) },
      { do: 'add', url: url(2) },
    ],
    owner,
  );
  expect(take()).toEqual([`user:${owner.id}`, `changes:${owner.id}`]);
  await resultsOf(
    [
      { do: 'edit', id, title: 'x' },
      { do: 'delete', id },
      { do: 'add', url: 'a' },
    ],
    owner,
  );
  expect(take()).toEqual([`changes:${owner.id}`]);
  await resultsOf(
    [
      { do: 'edit', id, title: 'x' },
      { do: 'delete', id },
    ],
    owner,
  );
  await resultsOf([{ do: 'add', url: url(2), on_duplicate: 'return' }], owner);
  await batch(
    [
      { do: 'add', url: url(3) },
      { do: 'delete', id },
    ],
    { atomic: true },
    owner,
  );
  expect(take()).toEqual([]);
});

test('a batch is one transaction: readers and polls see all of it or nothing', async () => {
  const { cursor } = (await user.post('/bookmarks/changes')).body;
  const poll = user.post('/bookmarks/changes', { cursor, wait_seconds: 30 });
  await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
  await resultsOf([1, 2, 3].map((n) => ({ do: 'add', url: url(n) })));
  const { bookmarks, has_more } = (await poll).body;
  expect([bookmarks.length, has_more]).toEqual([3, false]);
});

test('one batch of an account runs at a time on a replica', async () => {
  const { batchPermits } = service.context;
  await using account = await holdAccount(service.database.url, user);
  const batches = [1, 2, 3].map((n) => batch([{ do: 'add', url: url(n) }]));
  await expect.poll(() => batchPermits.gauges(user.id)).toMatchObject({ inUse: 1, waiting: 2 });
  await untilBlocked(service.database.url);
  expect(service.context.database.gauges.inUse).toBe(1);
  await account.release();
  for (const { body } of await Promise.all(batches)) expect(body.results[0].id).toBeGreaterThan(0);
});

test('after a lock timeout nothing has happened, and the same batch can be sent again', async () => {
  const operations = [{ do: 'add', url: url(1), key: 'k' }];
  await using account = await holdAccount(service.database.url, user);
  expect(await batch(operations)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  await account.release();
  expect(await resultsOf(operations)).toMatchObject([{ url: url(1) }]);
  expect(await total()).toBe(1);
});
