import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ApiResponse } from './support/responses.ts';
import { startService, type TestUser, useService } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';

// Section 4.2 of docs/contract.md and decisions 15 and 16: /bookmarks/sync.

const URL = 'https://example.org/';

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user();
});

const sync = (body: object = {}, owner = user, options: RequestInit = {}) =>
  owner.post('/bookmarks/sync', body, options);
const add = async (owner = user): Promise<number> =>
  (await owner.post('/bookmarks/add', { url: URL })).body.id;
const idsOf = ({ body }: ApiResponse): number[] => body.bookmarks.map(({ id }: { id: number }) => id);

/** Resolves when a replica holds this many polls. */
const untilHeld = (count: number, of = service) =>
  expect.poll(() => of.context.coordination.notifier.held).toBe(count);

/** Sends a sync that waits. When the service holds the sync, resolves with a promise of the response. */
async function startWait(
  owner = user,
  body: object = {},
  of = service,
): Promise<{ response: Promise<ApiResponse> }> {
  const held = of.context.coordination.notifier.held;
  const response = sync({ wait: true, ...body }, owner);
  await untilHeld(held + 1, of);
  return { response };
}

describe('sync without waiting', () => {
  test('returns bookmarks by ascending id, by default 50 from cursor 0', async () => {
    await user.post('/import', {
      bookmarks: Array.from({ length: 120 }, (_, i) => ({ url: `${URL}${i}` })),
    });
    const ids = (await user.post('/export')).body.bookmarks.map(({ id }: { id: number }) => id);
    const first = await sync();
    expect(idsOf(first)).toEqual(ids.slice(0, 50));
    expect(first.body).toMatchObject({ cursor: ids[49], has_more: true, waited: false });
    expect(await sync({ cursor: 0, limit: 50, wait: false })).toMatchObject({ body: first.body });
    const second = await sync({ cursor: ids[49], limit: 100 });
    expect(idsOf(second)).toEqual(ids.slice(50));
    expect(second.body).toMatchObject({ cursor: ids[119], has_more: false, waited: false });
    const exact = await sync({ cursor: ids[19], limit: 100 });
    expect(exact.body).toMatchObject({ cursor: ids[119], has_more: false });
    expect((await sync({ cursor: ids[18], limit: 100 })).body).toMatchObject({
      cursor: ids[118],
      has_more: true,
    });
  });

  test('returns the cursor unchanged if nothing is new', async () => {
    expect((await sync()).body).toEqual({ bookmarks: [], cursor: 0, has_more: false, waited: false });
    const id = await add();
    expect((await sync({ cursor: id })).body).toEqual({
      bookmarks: [],
      cursor: id,
      has_more: false,
      waited: false,
    });
  });

  test('returns nothing new for a cursor beyond the last id', async () => {
    await add();
    const cursor = Number.MAX_SAFE_INTEGER;
    expect((await sync({ cursor })).body).toEqual({ bookmarks: [], cursor, has_more: false, waited: false });
  });

  test('accepts a cursor that is not an existing id, and omits deleted bookmarks', async () => {
    const ids = [await add(), await add(), await add()];
    await user.post('/bookmarks/delete', { id: ids[1] });
    expect(idsOf(await sync({ cursor: ids[1] }))).toEqual([ids[2]]);
    expect(idsOf(await sync({ cursor: ids[0]! - 1 }))).toEqual([ids[0], ids[2]]);
  });
});

describe('waiting (decision 16)', () => {
  test('if something is new, the response comes at once with waited false', async () => {
    const id = await add();
    const response = await sync({ wait: true });
    expect(idsOf(response)).toEqual([id]);
    expect(response.body).toMatchObject({ cursor: id, waited: false });
  });

  test('an add ends the wait with the new bookmark and waited true', async () => {
    const { response } = await startWait();
    const id = await add();
    expect((await response).body).toMatchObject({
      bookmarks: [{ id, url: URL }],
      cursor: id,
      has_more: false,
      waited: true,
    });
    await untilHeld(0);
  });

  test.each([
    ['small', {}],
    ['staged', { importInlineBytes: 0 }],
  ])('a %s import ends the wait, in merge and replace mode', async (_, config) => {
    await using own = await startService(config);
    const owner = await own.user();
    for (const mode of ['merge', 'replace']) {
      const cursor = (await sync({}, owner)).body.cursor;
      const { response } = await startWait(owner, { cursor, limit: 2 }, own);
      const bookmarks = [1, 2, 3].map((n) => ({ url: `${URL}${mode}${n}` }));
      await owner.post('/import', { bookmarks, mode });
      const { body } = await response;
      expect(body.bookmarks.map(({ url }: { url: string }) => url)).toEqual([
        bookmarks[0]!.url,
        bookmarks[1]!.url,
      ]);
      expect(body).toMatchObject({ has_more: true, waited: true });
    }
  });

  test('edits, deletions, tags and other users do not end the wait', async () => {
    await using own = await startService({ syncWaitSeconds: 2 });
    const owner = await own.user();
    const ids = [await add(owner), await add(owner)];
    const { response } = await startWait(owner, { cursor: ids[1] }, own);
    await owner.post('/bookmarks/edit', { id: ids[0], title: 'edited' });
    await owner.post('/bookmarks/delete', { id: ids[1] });
    await owner.post('/tags/create', { name: 'new' });
    await owner.post('/import', { bookmarks: [{ url: URL }] });
    await add(await own.user());
    expect((await response).body).toEqual({
      bookmarks: [],
      cursor: ids[1],
      has_more: false,
      waited: true,
    });
  });

  test('at the end of the wait the list is empty and the cursor unchanged', async () => {
    await using own = await startService({ syncWaitSeconds: 1 });
    const owner = await own.user();
    const begun = performance.now();
    const waits = [0, 7, Number.MAX_SAFE_INTEGER].map(async (cursor) => {
      const { body } = await sync({ cursor, wait: true }, owner);
      expect(body).toEqual({ bookmarks: [], cursor, has_more: false, waited: true });
      expect(performance.now() - begun).toBeGreaterThan(990);
    });
    await Promise.all(waits);
    expect(own.context.coordination.notifier.held).toBe(0);
  });

  test('an add ends several polls of one token and of several tokens', async () => {
    const other = await service.token(user.id, 'read');
    const waits = [
      await startWait(),
      await startWait(),
      await startWait({ ...user, post: (path, body) => service.post(path, body, { token: other }) }),
    ];
    const id = await add();
    for (const { response } of waits) expect(idsOf(await response)).toEqual([id]);
  });

  test('a token may hold 16 polls: a further poll is not held and gets waited false', async () => {
    const waits = await Promise.all(
      Array.from({ length: 16 }, () => sync({ wait: true })).map(async (response) => ({ response })),
    );
    await untilHeld(16);
    expect((await sync({ wait: true })).body).toEqual({
      bookmarks: [],
      cursor: 0,
      has_more: false,
      waited: false,
    });
    const other = await service.token(user.id, 'read');
    const further = service.post('/bookmarks/sync', { wait: true }, { token: other });
    await untilHeld(17);
    const id = await add();
    for (const { response } of waits) expect(idsOf(await response)).toEqual([id]);
    expect((await further).body).toMatchObject({ cursor: id, waited: true });
    await untilHeld(0);
  });

  test('a replica that holds its maximum of polls responds to a further one with 503 and a random Retry-After', async () => {
    await using own = await startService({ maxWaiters: 1 });
    const owner = await own.user();
    const { response } = await startWait(owner, {}, own);
    const refused = await Promise.all(
      Array.from({ length: 40 }, async () => sync({ wait: true }, await own.user())),
    );
    const seconds = refused.map(({ status, body, headers }) => {
      expect([status, body.code]).toEqual([503, 'UNAVAILABLE']);
      return Number(headers.get('retry-after'));
    });
    for (const value of seconds) expect(Number.isInteger(value) && value >= 1 && value <= 10).toBe(true);
    expect(new Set(seconds).size).toBeGreaterThan(1);
    expect((await sync({}, owner)).status).toBe(200);
    const id = await add(owner);
    expect(idsOf(await response)).toEqual([id]);
    await startWait(owner, { cursor: id }, own);
  });

  test('a client that disconnects frees its place', async () => {
    const gone = new AbortController();
    const waits = Array.from({ length: 16 }, () => sync({ wait: true }, user, { signal: gone.signal }));
    await untilHeld(16);
    gone.abort();
    for (const wait of waits) await expect(wait).rejects.toThrow();
    await untilHeld(0);
    const { response } = await startWait();
    await add();
    expect((await response).body.waited).toBe(true);
  });

  test('a client that disconnects while its wait is being registered leaves nothing behind', async () => {
    for (let i = 0; i < 20; i++) {
      const gone = new AbortController();
      const wait = sync({ wait: true }, user, { signal: gone.signal });
      for (let turn = 0; turn < i; turn++) await new Promise(setImmediate);
      gone.abort();
      await expect(wait).rejects.toThrow();
    }
    await service.post('/user/profile', {}, { token: user.token });
    await untilHeld(0);
  });

  test('a client that disconnects while its token is looked up leaves nothing behind', async () => {
    const leaving = await service.user();
    const lock = await holdLock(service.database.url, 'lock table tokens in access exclusive mode');
    const gone = new AbortController();
    const wait = sync({ wait: true }, leaving, { signal: gone.signal });
    await untilBlocked(service.database.url);
    gone.abort();
    await expect(wait).rejects.toThrow();
    // When the replica responds to a later request, it has already noticed that this client disconnected.
    await fetch(`${service.origin}/livez`);
    await lock.release();
    for (let i = 0; i < 3; i++) await leaving.post('/user/profile');
    await untilHeld(0);
  });

  test('a revoked token ends its polls with 401, and polls of other tokens continue', async () => {
    const session = await service.session();
    const other = await service.token(session.id, 'read');
    const mine = [await startWait(session), await startWait(session)];
    const { response: theirs } = await startWait({
      ...session,
      post: (path, body) => service.post(path, body, { token: other }),
    });
    await session.post('/logout');
    for (const { response } of mine) expect((await response).body.code).toBe('INVALID_TOKEN');
    const { body } = await service.post('/bookmarks/sync', {}, { token: other });
    expect(body.bookmarks).toEqual([]);
    await untilHeld(1);
    await service.post('/bookmarks/add', { url: URL }, { token: await service.token(session.id, 'write') });
    expect((await theirs).body.waited).toBe(true);
  });

  test('a token that expires during the wait ends it with 401, at the latest at the timeout', async () => {
    await using own = await startService({ syncWaitSeconds: 2 });
    const owner = await own.user();
    const { response } = await startWait(owner, {}, own);
    await own.context.database.sql`update tokens set expires_at = now() where user_id = ${owner.id}`;
    expect((await response).body.code).toBe('INVALID_TOKEN');
  });

  test('a draining replica ends its polls early with the empty response and closes the connection', async () => {
    await using own = await startService();
    const owner = await own.user();
    const cursor = await add(owner);
    const waits = [await startWait(owner, { cursor }, own), await startWait(owner, { cursor }, own)];
    own.context.lifecycle.draining = true;
    own.context.coordination.notifier.drain(0);
    for (const { response } of waits) {
      const { body, headers } = await response;
      expect(body).toEqual({ bookmarks: [], cursor, has_more: false, waited: true });
      expect(headers.get('x-retry-after-ms')).toMatch(/^\d{1,3}$/);
      expect(headers.get('connection')).toBe('close');
    }
    const late = await sync({ cursor, wait: true }, owner);
    expect(late.body).toMatchObject({ bookmarks: [], cursor, has_more: false });
    expect(own.context.coordination.notifier.held).toBe(0);
  });

  test('the rate-limit headers of a held poll are those from the time of its admission (decision 26)', async () => {
    await using own = await startService({ rateLimitRequests: 10 });
    const owner = await own.user();
    const { response } = await startWait(owner, {}, own);
    const added = await owner.post('/bookmarks/add', { url: URL });
    expect((await response).headers.get('x-ratelimit-remaining')).toBe('9');
    expect(added.headers.get('x-ratelimit-remaining')).toBe('8');
  });
});

describe('wait_seconds', () => {
  // This replica would hold a poll for an hour, so only `wait_seconds` ends the polls of these tests.
  const patient = useService({ syncWaitSeconds: 3_600 }, { beside: service });

  test.each(['/bookmarks/sync', '/bookmarks/changes'])(
    'ends a poll of %s, also without wait',
    async (path) => {
      const owner = await patient.user();
      const { cursor } = (await owner.post(path)).body;
      const begun = performance.now();
      for (const more of [{}, { wait: true }, { wait: null }]) {
        const { body } = await owner.post(path, { cursor, wait_seconds: 1, ...more });
        expect(body).toMatchObject({ bookmarks: [], cursor, has_more: false, waited: true });
      }
      expect(performance.now() - begun).toBeGreaterThan(2_970);
      expect(patient.context.coordination.notifier.held).toBe(0);
    },
  );

  test('an add and a revocation still end the wait earlier', async () => {
    const session = await patient.session();
    const { response } = await startWait(session, { wait: undefined, wait_seconds: 30 }, patient);
    const cursor = await add(session);
    expect((await response).body).toMatchObject({ cursor, waited: true });
    const held = await startWait(session, { wait: undefined, wait_seconds: 30, cursor }, patient);
    await session.post('/logout');
    expect((await held.response).body.code).toBe('INVALID_TOKEN');
  });

  test('a longer time than SYNC_WAIT_SECONDS means SYNC_WAIT_SECONDS', async () => {
    await using own = await startService({ syncWaitSeconds: 1 });
    const { body } = await sync({ wait_seconds: 30 }, await own.user());
    expect(body).toMatchObject({ bookmarks: [], waited: true });
  });

  test('0 responds immediately, with waited false', async () => {
    for (const path of ['/bookmarks/sync', '/bookmarks/changes']) {
      const { cursor } = (await user.post(path)).body;
      const { body } = await user.post(path, { cursor, wait_seconds: 0 });
      expect(body).toMatchObject({ bookmarks: [], cursor, waited: false });
    }
  });

  test('with wait false, it is a VALIDATION_ERROR that names the field', async () => {
    for (const path of ['/bookmarks/sync', '/bookmarks/changes'])
      expect((await user.post(path, { wait: false, wait_seconds: 0 })).body).toEqual({
        error: 'wait_seconds: cannot be given with wait: false',
        code: 'VALIDATION_ERROR',
      });
  });

  test('polls with wait_seconds count among the 16 held polls of a token', async () => {
    const owner = await patient.user();
    const gone = new AbortController();
    const polls = Array.from({ length: 16 }, () =>
      sync({ wait_seconds: 30 }, owner, { signal: gone.signal }),
    );
    await untilHeld(16, patient);
    expect((await sync({ wait_seconds: 30 }, owner)).body).toMatchObject({ bookmarks: [], waited: false });
    gone.abort();
    for (const poll of polls) await expect(poll).rejects.toThrow();
    await untilHeld(0, patient);
  });
});

describe('the order of ids (decision 15)', () => {
  test('ids of one user become visible in order, even if a writer is slow to commit', async () => {
    // This writer holds the account's lock and has drawn the id of a bookmark, but has not committed yet.
    const sql = postgres(service.database.url, { max: 1 });
    onTestFinished(() => sql.end());
    const drawn = Promise.withResolvers<number>();
    const slow = Promise.withResolvers<void>();
    const transaction = sql.begin(async (tx) => {
      await tx`update accounts set bookmark_count = bookmark_count + 1 where user_id = ${user.id}`;
      const [row] = await tx<{ id: string }[]>`
        insert into bookmarks (
          user_id, id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
        )
        values (${user.id}, next_id('bookmarks_id_seq'), now(), now(), gen_random_uuid(), ${URL}, '', '', '{}', '[]', ${URL})
        returning id`;
      drawn.resolve(Number(row!.id));
      await slow.promise;
    });
    const first = await drawn.promise;
    const second = add();
    const { response } = await startWait();
    expect((await sync()).body.bookmarks).toEqual([]);
    slow.resolve();
    await transaction;
    const later = await second;
    expect(later).toBeGreaterThan(first);
    expect(idsOf(await sync())).toEqual([first, later]);
    expect(idsOf(await response)[0]).toBe(first);
  });
});
