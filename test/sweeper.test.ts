import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { Context } from '../src/context.ts';
import type { Idempotency } from '../src/domain/idempotency.ts';
import { parseToken } from '../src/domain/tokens.ts';
import { beginRound, buildPendingFilters } from '../src/process/pending-filters.ts';
import { deleteLeftovers, startSweeper } from '../src/process/sweeper.ts';
import { beginSmallImport, claimImport, refuseImport } from '../src/store/import-leases.ts';
import { beginImport, cancelImport, queueImport } from '../src/store/staged-imports.ts';
import { deleteOldImports, deleteOldResponses } from '../src/store/sweep.ts';
import { runOn } from './support/database.ts';
import { useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';

// The sweep deletes everything that has expired, however much that is, and nothing else.

const service = useService();

test('a sweep deletes exactly the expired tokens, invites and idempotency keys', async () => {
  const { url } = service.database;
  const user = await service.user();
  await service.invite('live@example.org');
  const headers = { 'idempotency-key': 'live' };
  await user.post('/bookmarks/add', { url: 'http://a' }, { headers });
  await runOn(
    url,
    `insert into tokens (user_id, token_hash, last_four, kind, scope, expires_at)
    select ${user.id}, sha256(n::text::bytea), '', 'api', 'read', now() - interval '1 second' from generate_series(1, 2500) n;
    insert into invites (code, email, email_key, expires_at)
    select lpad(n::text, 8, '0'), 'a', 'a', now() - interval '1 second' from generate_series(1, 2500) n;
    insert into idempotency_keys (user_id, key, request_hash, response, bytes, created_at)
    select ${user.id}, n, '', '{}', 100, now() - interval '25 hours' from generate_series(1, 2500) n;
    update accounts set kept_bytes = kept_bytes + 250000 where user_id = ${user.id}`,
  );
  await deleteLeftovers(service.context);
  const [left] = await runOn<object>(
    url,
    `select (select count(*) from tokens) as tokens, (select count(*) from invites) as invites,
      (select count(*) from idempotency_keys) as keys,
      (select kept_bytes = bytes from accounts join idempotency_keys using (user_id)) as counted`,
  );
  expect(left).toEqual({ tokens: '1', invites: '1', keys: '1', counted: true });
  expect((await user.post('/user/profile')).status).toBe(200);
});

test('a sweep keeps a finished import for an hour, a waiting one for a day, and a stopped upload for a minute', async () => {
  const user = await service.user();
  const { database } = service.context;
  const { url } = service.database;
  const principal = { userId: user.id, hash: parseToken(user.token)!.hash };
  const idempotency = { key: 'k', requestHash: Buffer.alloc(32) };
  const begin = (id: string) => beginImport(database, principal, id, 1, 1_000_000);
  const queue = (id: string, keyed?: { idempotency: Idempotency }) =>
    begin(id).then(() => queueImport(database, principal, id, { ...keyed }));
  const end = (id: string) => runOn(url, `select end_import(${user.id}, '${id}', 'done', '{}')`);
  const lease = (id: string) => ({ userId: user.id, id, leaseId: randomUUID() });
  const states: Record<string, (id: string) => Promise<unknown>> = {
    receiving: begin,
    queued: queue,
    done: (id) => queue(id).then(() => end(id)),
    'done with a key': (id) => queue(id, { idempotency }).then(() => end(id)),
    refused: async (id) => {
      await queue(id, { idempotency });
      const own = lease(id);
      await claimImport(database, own);
      await refuseImport(database, own, '{"error":"","code":"VALIDATION_ERROR"}');
    },
    cancelled: (id) => queue(id).then(() => cancelImport(database, { userId: user.id, id })),
    small: (id) => beginSmallImport(database, principal, lease(id), undefined),
  };
  const ages: [state: string, keptFor: string, deletedAfter: string][] = [
    ['receiving', '59 seconds', '61 seconds'],
    ['queued', '23 hours 59 minutes', '24 hours 1 minute'],
    ['done', '59 minutes', '61 minutes'],
    ['done with a key', '24 hours 59 minutes', '25 hours 1 minute'],
    ['refused', '59 minutes', '61 minutes'],
    ['cancelled', '59 minutes', '61 minutes'],
    ['small', '23 hours 59 minutes', '24 hours 1 minute'],
  ];
  for (const [state, keptFor, deletedAfter] of ages) {
    const id = randomUUID();
    await states[state]!(id);
    const countAfter = async (age: string): Promise<number> => {
      await runOn(url, `update imports set expires_at = expires_at - interval '${age}' where id = '${id}'`);
      await deleteOldImports(database);
      const left = await runOn(
        url,
        `update imports set expires_at = expires_at + interval '${age}' where id = '${id}' returning 1`,
      );
      return left.length;
    };
    expect(await countAfter(keptFor), `${state} for ${keptFor}`).toBe(1);
    expect(await countAfter(deletedAfter), `${state} for ${deletedAfter}`).toBe(0);
  }
});

test('a sweep keeps an upload that continues during the sweep', async () => {
  const user = await service.user();
  const { url } = service.database;
  await runOn(
    url,
    `insert into imports (user_id, id, is_staged, state, expires_at)
    values (${user.id}, gen_random_uuid(), true, 'receiving', now() - interval '1 second')`,
  );
  const upload = await holdLock(
    url,
    `update imports set expires_at = now() + interval '1 minute' where user_id = ${user.id}`,
  );
  const sweep = deleteOldImports(service.context.database);
  await untilBlocked(url, 'sweep_imports');
  await upload.commit();
  expect(await sweep).toBe(0);
  expect(await runOn(url, `select 1 from imports where user_id = ${user.id}`)).toHaveLength(1);
});

test('a sweep keeps an idempotency key for 24 hours', async () => {
  const user = await service.user();
  const { url } = service.database;
  const left = async () =>
    (await runOn(url, `select 1 from idempotency_keys where user_id = ${user.id}`)).length;
  await user.post('/bookmarks/add', { url: 'http://a' }, { headers: { 'idempotency-key': 'k' } });
  for (const [age, count] of [
    ['23 hours 59 minutes', 1],
    ['24 hours 1 minute', 0],
  ]) {
    await runOn(
      url,
      `update idempotency_keys set created_at = now() - interval '${age}' where user_id = ${user.id}`,
    );
    await deleteLeftovers(service.context);
    expect(await left()).toBe(count);
  }
});

test('only processes with a worker queue a waiting import again', async () => {
  const user = await service.user();
  await runOn(
    service.database.url,
    `insert into imports (user_id, id, is_staged, state, touched_at)
    values (${user.id}, gen_random_uuid(), true, 'queued', now() - interval '1 minute')`,
  );
  const startCounting = (hasWorker: boolean) => {
    const added: string[] = [];
    const { context } = service;
    const imports = { ...context.coordination.imports, add: async (id: string) => void added.push(id) };
    const coordination = { ...context.coordination, imports };
    onTestFinished(startSweeper({ ...context, coordination } as Context, hasWorker));
    return added;
  };
  const [atWorker, atApi] = [startCounting(true), startCounting(false)];
  // Each round of sweeps visits every user once. The second call of `add` therefore belongs to a second round. By then,
  // the process without a worker has also had a whole round, and has added nothing.
  await expect.poll(() => atWorker.length).toBe(2);
  expect(atApi).toEqual([]);
});

test('a sweep keeps a key that is used again during the sweep', async () => {
  const user = await service.user();
  const { url } = service.database;
  await user.post('/bookmarks/add', { url: 'http://a' }, { headers: { 'idempotency-key': 'k' } });
  await runOn(
    url,
    `update idempotency_keys set created_at = now() - interval '25 hours' where user_id = ${user.id}`,
  );
  await using renewal = await holdLock(
    url,
    `update idempotency_keys set created_at = now() where user_id = ${user.id}`,
  );
  await deleteOldResponses(service.context.database);
  await renewal.commit();
  await deleteOldResponses(service.context.database);
  expect(await runOn(url, `select 1 from idempotency_keys where user_id = ${user.id}`)).toHaveLength(1);
});

test('the sweep of idempotency keys does not wait for a locked account', async () => {
  const user = await service.user();
  const { url } = service.database;
  await user.post('/bookmarks/add', { url: 'http://a' }, { headers: { 'idempotency-key': 'k' } });
  await runOn(
    url,
    `update idempotency_keys set created_at = now() - interval '25 hours' where user_id = ${user.id}`,
  );
  await using writer = await holdAccount(url, user);
  expect(await deleteOldResponses(service.context.database)).toBe(0);
  await writer.release();
  expect(await deleteOldResponses(service.context.database)).toBe(1);
});

test("a user's blocks get filters even if a sweep reaches its limit of users before them", async () => {
  const { url } = service.database;
  const users = [await service.user(), await service.user(), await service.user()];
  const bookmarks = Array.from({ length: 200 }, (_, n) => ({ url: `http://site/${n}` }));
  for (const user of users) await user.post('/import', { bookmarks });
  const findPendingFilters = async () => {
    const rows = await runOn<{ id: string }>(
      url,
      'select distinct user_id as id from search_signatures where bits is null order by 1',
    );
    return rows.map(({ id }) => Number(id));
  };
  const [first, second, last] = users.map(({ id }) => id).sort((a, b) => a - b);
  expect(await findPendingFilters()).toEqual([first, second, last]);
  await using writer = await holdLock(
    url,
    `update search_signatures set edits = edits + 1 where user_id in (${first}, ${second})`,
  );
  await buildPendingFilters(service.context, beginRound(2));
  expect(await findPendingFilters()).toEqual([first, second]);
  await writer.release();
  await buildPendingFilters(service.context, beginRound(2));
  expect(await findPendingFilters()).toEqual([]);
});
