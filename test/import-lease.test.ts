import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { prepareEntries } from '../src/imports/batches.ts';
import type { Preparers } from '../src/imports/preparers.ts';
import { runImport } from '../src/imports/run.ts';
import { DatabaseUnavailable } from '../src/store/driver/errors.ts';
import {
  type Claim,
  claimImport,
  refuseImport,
  releaseLease,
  renewLease,
  stageBatch,
} from '../src/store/import-leases.ts';
import { finishImport } from '../src/store/imports.ts';
import {
  beginImport,
  cancelImport,
  type ImportKey,
  jobIdOf,
  type Lease,
  newImport,
  queueImport,
  stageChunk,
} from '../src/store/staged-imports.ts';
import { findQueuedImports } from '../src/store/sweep.ts';
import type { PrincipalKey } from '../src/store/tokens.ts';
import type { ApiResponse } from './support/responses.ts';
import { runOn } from './support/run-on.ts';
import { startService, type TestService, type TestUser } from './support/service.ts';
import { holdAccount, untilBlocked } from './support/sessions.ts';
import { until } from './support/until.ts';

// Tests decision 34. A staged import never has two workers that run it at the same time. At most three workers begin to
// run it. A worker that shuts down gracefully does not count as one of the three.

const body = { bookmarks: Array.from({ length: 3 }, (_, n) => ({ url: `http://entry/${n}` })) };

const neverStops = new AbortController().signal;

describe('the lease of a staged import', () => {
  let service: TestService;
  let user: TestUser;
  let response: Promise<ApiResponse>;
  let staged: ImportKey;

  beforeAll(async () => {
    service = await startService({ importInlineBytes: 0 });
    // Without a worker, imports stay queued until a test runs them.
    await service.context.coordination.imports.stopWorker(0);
  });
  afterAll(() => service[Symbol.asyncDispose]());
  beforeEach(async () => {
    user = await service.user();
    response = user.post('/import', body);
    staged = await until(async () => (await rows())[0]);
  });

  const rows = () => service.context.database.sql<
    { userId: number; id: string; attempts: number; state: string }[]
  >`
    select user_id as "userId", id, attempts, state
    from imports
    where user_id = ${user.id} and state <> 'receiving'`;
  const expire = () => service.context.database.sql`
    update imports set lease_until = now() - interval '1 second' where user_id = ${user.id}`;
  const newLease = (): Lease => ({ userId: staged.userId, id: staged.id, leaseId: randomUUID() });
  const claim = async (lease = newLease()): Promise<Claim['outcome'] | undefined> =>
    (await claimImport(service.context.database, lease))?.outcome;
  const run = () => runImport(service.context, jobIdOf(staged), neverStops);

  test('is given to one of many workers that claim it at once', async () => {
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim()));
    expect(claims.filter((outcome) => outcome === 'claimed')).toHaveLength(1);
    expect(claims.filter((outcome) => outcome === 'queued')).toHaveLength(19);
    await run();
    expect(await rows()).toMatchObject([{ state: 'queued', attempts: 1 }]);
    await expire();
    await Promise.all([run(), run(), run()]);
    expect((await response).body).toMatchObject({ imported: 3 });
    expect(await rows()).toMatchObject([{ state: 'done', attempts: 2 }]);
  });

  test('prevents the sweep from queueing the import again until the lease expires', async () => {
    const { database } = service.context;
    await database.sql`update imports set touched_at = now() - interval '4 seconds' where user_id = ${user.id}`;
    const isFound = async () => (await findQueuedImports(database, 3_000)).some(({ id }) => id === staged.id);
    expect(await isFound()).toBe(true);
    await claim();
    expect(await isFound()).toBe(false);
    await expire();
    expect(await isFound()).toBe(true);
    await run();
    expect(await isFound()).toBe(false);
  });

  test('can be renewed only by its holder', async () => {
    const { database } = service.context;
    const lease = newLease();
    await claim(lease);
    await expire();
    expect(await renewLease(database, newLease())).toBe(false);
    expect(await renewLease(database, lease)).toBe(true);
    expect(await claim()).toBe('queued');
    await expire();
    expect(await claim()).toBe('claimed');
    expect(await renewLease(database, lease)).toBe(false);
    await releaseLease(database, lease, true);
    expect(await rows()).toMatchObject([{ attempts: 2 }]);
  });

  test('stays with a worker that could not renew it, because the database may be back before the lease expires', async () => {
    const { database } = service.context;
    const renewals: (() => void)[] = [];
    const clock = {
      ...service.context.coordination.clock,
      after: (_: number, renew: () => void) => {
        renewals.push(renew);
        return () => {};
      },
    };
    const coordination = { ...service.context.coordination, clock };
    let isAway = false;
    const write: typeof database.write = (...call) =>
      isAway ? Promise.reject(new DatabaseUnavailable('lost', true)) : database.write(...call);
    const context = {
      ...service.context,
      coordination,
      database: Object.assign(Object.create(database), { write }),
    };
    await using account = await holdAccount(service.database.url, user);
    const running = runImport(context, jobIdOf(staged), neverStops);
    await untilBlocked(service.database.url, 'import_bookmarks');
    isAway = true;
    renewals[0]!();
    await expect.poll(() => renewals.length).toBe(2);
    await account.release();
    await running;
    expect((await response).body).toMatchObject({ imported: 3 });
  });

  test('does not keep the import from being cancelled while it waits for the account', async () => {
    const { database, importDatabase } = service.context;
    const lease = newLease();
    await claim(lease);
    await using account = await holdAccount(service.database.url, user);
    const prepared = await prepareEntries({ replace: false, entries: body.bookmarks });
    const finished = finishImport(importDatabase, lease, prepared, { bookmarks: 10, trash: 10 });
    await untilBlocked(service.database.url, 'import_bookmarks');
    expect(await cancelImport(database, staged)).toMatchObject({ state: 'cancelled' });
    expect((await response).status).toBe(503);
    await account.release();
    expect(await finished).toBeUndefined();
    expect((await user.post('/export')).body.count).toBe(0);
  });

  test('is void for a worker after another worker got it: the old holder writes nothing', async () => {
    const { database } = service.context;
    await user.post('/bookmarks/add', { url: 'http://kept/' });
    const old = newLease();
    await claim(old);
    await expire();
    await claim();
    const nothing = await prepareEntries({ replace: true, entries: [] });
    expect(await finishImport(database, old, nothing, { bookmarks: 10, trash: 10 })).toBeUndefined();
    await refuseImport(database, old, '{"error":"none","code":"VALIDATION_ERROR"}');
    expect(await rows()).toMatchObject([{ state: 'queued', attempts: 2 }]);
    expect((await user.post('/bookmarks/search')).body.total).toBe(1);
  });

  test('lets the next worker begin anew: what the worker before it had prepared is not imported', async () => {
    const { database } = service.context;
    const old = newLease();
    await claim(old);
    const { batch } = await prepareEntries({ replace: false, entries: [{ url: 'http://prepared.twice/' }] });
    expect(await stageBatch(database, old, 0, batch)).toBe(true);
    await expire();
    await run();
    expect((await response).body).toEqual({ imported: 3, skipped: 0, errors: [] });
    expect((await user.post('/bookmarks/search', { query: 'prepared.twice' })).body.total).toBe(0);
  });

  // Polls are held for longer than a test may take, so only a notification can end them. No request waits for this
  // import, as after the death of its replica.
  test("the worker itself ends the user's held polls when the import is done", async () => {
    await using replica = await startService({ syncWaitSeconds: 3_600 }, { database: service.database });
    const owner = await replica.user();
    const { context } = replica;
    const principal = { userId: owner.id, hash: parseToken(owner.token)!.hash } as PrincipalKey;
    const orphan = newImport(owner.id);
    const bytes = Buffer.from(JSON.stringify(body));
    await beginImport(context.database, principal, orphan.id, bytes.length, 1_000_000);
    await stageChunk(context.database, orphan, 0, bytes);
    await queueImport(context.database, principal, orphan.id, {});
    const polls = [
      owner.post('/bookmarks/sync', { cursor: 0, wait: true }),
      owner.post('/bookmarks/changes', {
        cursor: (await owner.post('/bookmarks/changes', { from: 'now' })).body.cursor,
        wait: true,
      }),
    ];
    await expect.poll(() => context.coordination.notifier.held).toBe(2);
    await runImport(context, jobIdOf(orphan), neverStops);
    for (const poll of polls)
      expect((await poll).body).toMatchObject({ waited: true, bookmarks: { length: 3 } });
  });

  test('is not given a fourth time: the import never runs, and its request gets 503', async () => {
    for (const attempt of [1, 2, 3]) {
      expect(await claim()).toBe('claimed');
      expect(await rows()).toMatchObject([{ state: 'queued', attempts: attempt }]);
      await expire();
    }
    await run();
    const { status, headers, body: answer } = await response;
    expect([status, answer.code]).toEqual([503, 'UNAVAILABLE']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    await run();
    expect(await rows()).toMatchObject([{ state: 'cancelled', attempts: 3 }]);
    expect((await user.post('/bookmarks/search')).body.total).toBe(0);
    const chunks = await service.context.database.sql`select from import_chunks where user_id = ${user.id}`;
    expect(chunks).toHaveLength(0);
  });

  test('is given back without using up an attempt by a worker that is stopped, even while it waits for the database', async () => {
    const { importDatabase } = service.context;
    const busy = await Promise.all([importDatabase.sql.reserve(), importDatabase.sql.reserve()]);
    const stop = new AbortController();
    const running = runImport(service.context, jobIdOf(staged), stop.signal);
    await until(async () => (await rows())[0]!.attempts === 1);
    stop.abort();
    await running;
    expect(await rows()).toMatchObject([{ state: 'queued', attempts: 0 }]);
    for (const connection of busy) connection.release();
    await run();
    expect((await response).body).toMatchObject({ imported: 3 });
  });

  test('uses up an attempt if the run itself fails, and none if the database fails', async () => {
    const failWith = (error: Error) => {
      const preparers = { prepare: () => Promise.reject(error) } as unknown as Preparers;
      return runImport({ ...service.context, preparers }, jobIdOf(staged), neverStops);
    };
    await expect(failWith(new Error('a fault'))).rejects.toThrow('a fault');
    expect(await rows()).toMatchObject([{ state: 'queued', attempts: 1 }]);
    await expect(failWith(new DatabaseUnavailable('lost', true))).rejects.toThrow('database unavailable');
    expect(await rows()).toMatchObject([{ state: 'queued', attempts: 1 }]);
    await run();
    expect((await response).body).toMatchObject({ imported: 3 });
  });

  test('uses up an attempt if the import takes longer than a statement may', async () => {
    await using account = await holdAccount(service.database.url, user);
    for (const attempts of [1, 2, 3]) {
      const ended = expect(run()).rejects.toMatchObject({ reason: 'cancelled' });
      const { pid, url } = await untilBlocked(service.database.url, 'import_bookmarks');
      // The cancelled statement fails with the error code that `statement_timeout` also causes.
      await runOn(url, `select pg_cancel_backend(${pid})`);
      await ended;
      expect(await rows()).toMatchObject([{ state: 'queued', attempts }]);
    }
    await account.release();
    await run();
    expect((await response).body).toMatchObject({ code: 'UNAVAILABLE' });
    expect((await user.post('/bookmarks/search')).body.total).toBe(0);
  });

  test('does not let an import run after its token was revoked: nothing is imported, and the response is 401', async () => {
    await user.post('/bookmarks/add', { url: 'http://kept/' });
    const { sql } = service.context.database;
    await sql`delete from tokens where user_id = ${user.id}`;
    await run();
    expect(await response).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
    const kept = await sql`select url from bookmarks where user_id = ${user.id}`;
    expect([...kept]).toEqual([{ url: 'http://kept/' }]);
  });
});
