import { expect, test } from 'vitest';
import { useService } from './support/service.ts';
import { holdAccount, untilBlocked } from './support/sessions.ts';

// Decision 24: once a revocation is acknowledged, it is in effect, even for earlier requests that still wait.

const service = useService();

const WRITES: [path: string, body: (ids: { bookmark: number; tag: number; other: number }) => object][] = [
  ['/bookmarks/add', () => ({ url: 'http://late.example', tags: ['late'] })],
  ['/bookmarks/add', () => ({ url: 'http://late.example', on_duplicate: 'return' })],
  ['/bookmarks/edit', ({ bookmark: id }) => ({ id, title: 'late', tags: ['late'] })],
  ['/bookmarks/edit', ({ bookmark: id }) => ({ id, title: 'late' })],
  ['/bookmarks/edit', ({ bookmark: id }) => ({ id, comment: 'late' })],
  ['/bookmarks/delete', ({ bookmark: id }) => ({ id })],
  ['/bookmarks/delete', ({ bookmark: id }) => ({ id, trash: true })],
  ['/bookmarks/edit', ({ bookmark }) => ({ ids: [bookmark], add_tags: ['late'] })],
  ['/bookmarks/delete', ({ bookmark }) => ({ ids: [bookmark] })],
  ['/bookmarks/delete', ({ bookmark }) => ({ ids: [bookmark], trash: true })],
  ['/tags/create', () => ({ name: 'late' })],
  ['/tags/update', ({ tag: id }) => ({ id, name: 'late' })],
  ['/tags/delete', ({ tag: id }) => ({ id })],
  ['/tags/update', () => ({ path: 'early', name: 'late', with_children: true })],
  ['/tags/delete', () => ({ path: 'early', with_children: true })],
  ['/tags/merge', ({ tag, other }) => ({ id: tag, into_id: other })],
  ['/import', () => ({ bookmarks: [{ url: 'http://late.example' }] })],
];

test.for(WRITES)('%s changes nothing if its token is revoked while it waits', async ([path, bodyOf]) => {
  const user = await service.session();
  const other = await service.token(user.id, 'read');
  const { body: bookmark } = await user.post('/bookmarks/add', {
    url: 'http://early.example',
    tags: ['early', 'other'],
  });
  const readAll = async () => [
    (await service.post('/export', {}, { token: other })).body.bookmarks,
    (await service.post('/tags/list', {}, { token: other })).body,
  ];
  const before = await readAll();
  await using account = await holdAccount(service.database.url, user);
  const late = user.post(
    path,
    bodyOf({ bookmark: bookmark.id, tag: bookmark.tags[0].id, other: bookmark.tags[1].id }),
  );
  await untilBlocked(service.database.url);
  expect((await user.post('/logout')).status).toBe(200);
  await account.release();
  expect(await late).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
  expect(await readAll()).toEqual(before);
});
