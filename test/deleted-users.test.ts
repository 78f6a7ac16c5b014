import { expect, test } from 'vitest';
import { deleteUser } from '../src/store/admin.ts';
import { runOn } from './support/database.ts';
import { startService, useService } from './support/service.ts';
import { holdAccount, holdLock, untilBlocked } from './support/sessions.ts';

// A user is deleted while their requests are in progress. Each request ends as if it ran before or after the deletion.

const service = useService();

test('an invite whose user is deleted first is refused', async () => {
  const { url } = service.database;
  const user = await service.user({ email: 'leaving@example.org' });
  const code = await service.invite('leaving@example.org');
  await using account = await holdAccount(url, user);
  const deletion = deleteUser(service.context.database, 'leaving@example.org');
  await untilBlocked(url, 'delete_user');
  const exchange = service.post('/auth/invite', { code });
  await untilBlocked(url, 'exchange_invite');
  await account.release();
  expect(await deletion).toBe(true);
  expect(await exchange).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
});

test('the exchange of an invite succeeds if it began before the deletion, and its token is then revoked', async () => {
  const { url } = service.database;
  const user = await service.user({ email: 'returning@example.org' });
  const code = await service.invite('returning@example.org');
  await using row = await holdLock(url, `select from users where id = ${user.id} for update`);
  const exchange = service.post('/auth/invite', { code });
  await untilBlocked(url, 'exchange_invite');
  const deletion = deleteUser(service.context.database, 'returning@example.org');
  await untilBlocked(url, 'delete_user');
  await row.release();
  const { status, body } = await exchange;
  expect(status).toBe(200);
  expect(await deletion).toBe(true);
  expect((await service.post('/user/profile', {}, { token: body.token })).status).toBe(401);
});

test('an import whose user is deleted before it is staged is refused', async () => {
  await using staging = await startService({ importInlineBytes: 0 }, { database: service.database });
  const { url } = service.database;
  const user = await staging.user({ email: 'importing@example.org' });
  await using bytes = await holdLock(
    url,
    "select pg_advisory_xact_lock(hashtextextended('imports.bytes', 0))",
  );
  const late = user.post('/import', { bookmarks: [{ url: 'https://example.org/' }] });
  await untilBlocked(url, 'begin_import');
  expect(await deleteUser(service.context.database, 'importing@example.org')).toBe(true);
  await bytes.release();
  expect(await late).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
  expect(await runOn(url, `select 1 from imports where user_id = ${user.id}`)).toEqual([]);
});

test('a staged import that waits for a worker is refused, and the client is not told to retry', async () => {
  await using staging = await startService({ importInlineBytes: 0 }, { database: service.database });
  await staging.context.coordination.imports.stopWorker(0);
  const user = await staging.user({ email: 'waiting@example.org' });
  const late = user.post('/import', { bookmarks: [{ url: 'https://example.org/' }] });
  const states = () => runOn(service.database.url, `select state from imports where user_id = ${user.id}`);
  await expect.poll(states).toEqual([{ state: 'queued' }]);
  expect(await deleteUser(service.context.database, 'waiting@example.org')).toBe(true);
  expect(await late).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
});
