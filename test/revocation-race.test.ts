import postgres from 'postgres';
import { expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { type TestUser, useService } from './support/service.ts';

// Decision 24: revocation holds from the moment that it is answered, for requests too that came before and wait their turn.

const service = useService();

/** Holds an account's lock, as a large import does, until what is answered is called. */
async function holdAccount({ id }: TestUser): Promise<() => Promise<void>> {
  const sql = postgres(service.database.url, { max: 1 });
  await sql`begin`;
  await sql`select from accounts where user_id = ${id} for no key update`;
  return async () => {
    await sql`commit`;
    await sql.end();
  };
}

/** Resolves once a statement of the service waits for a row. */
const untilWaiting = () =>
  expect
    .poll(
      () =>
        runOn(
          service.database.url,
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ),
      { interval: 5 },
    )
    .toHaveLength(1);

const WRITES: [path: string, body: (ids: { bookmark: number; tag: number }) => object][] = [
  ['/bookmarks/add', () => ({ url: 'http://late.example', tags: ['late'] })],
  ['/bookmarks/edit', ({ bookmark: id }) => ({ id, title: 'late', tags: ['late'] })],
  ['/bookmarks/delete', ({ bookmark: id }) => ({ id })],
  ['/tags/create', () => ({ name: 'late' })],
  ['/tags/update', ({ tag: id }) => ({ id, name: 'late' })],
  ['/tags/delete', ({ tag: id }) => ({ id })],
  ['/import', () => ({ bookmarks: [{ url: 'http://late.example' }] })],
];

test.for(WRITES)('%s that waits while its token is revoked changes nothing', async ([path, bodyOf]) => {
  const user = await service.session();
  const other = await service.token(user.id, 'read');
  const { body: bookmark } = await user.post('/bookmarks/add', {
    url: 'http://early.example',
    tags: ['early'],
  });
  const readAll = async () => [
    (await service.post('/export', {}, { token: other })).body.bookmarks,
    (await service.post('/tags/list', {}, { token: other })).body,
  ];
  const before = await readAll();
  const release = await holdAccount(user);
  const late = user.post(path, bodyOf({ bookmark: bookmark.id, tag: bookmark.tags[0].id }));
  await untilWaiting();
  expect((await user.post('/logout')).status).toBe(200);
  await release();
  expect(await late).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
  expect(await readAll()).toEqual(before);
});
