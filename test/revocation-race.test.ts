import { expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { runOn } from './support/run-on.ts';
import { type TestUser, useService } from './support/service.ts';
import { holdAccount, untilBlocked } from './support/sessions.ts';

// Decision 24: once a revocation is acknowledged, it is in effect, even for earlier requests that still wait.

const service = useService();

/** The ids of what the account has: a bookmark with two tags, a bookmark in the trash, a token and another session. */
interface Ids {
  bookmark: number;
  tag: number;
  other: number;
  trashed: number;
  token: number;
  session: number;
}

const WRITES: [path: string, body: (ids: Ids) => object][] = [
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
  ['/bookmarks/batch', ({ bookmark: id }) => ({ operations: [{ do: 'edit', id, title: 'late' }] })],
  [
    '/bookmarks/batch',
    ({ bookmark: id }) => ({ operations: [{ do: 'delete', id, key: 'late' }], atomic: true }),
  ],
  ['/trash/restore', ({ trashed }) => ({ ids: [trashed] })],
  ['/trash/delete', ({ trashed }) => ({ ids: [trashed] })],
  ['/trash/delete', () => ({ all: true })],
  ['/tags/create', () => ({ name: 'late' })],
  ['/tags/update', ({ tag: id }) => ({ id, name: 'late' })],
  ['/tags/delete', ({ tag: id }) => ({ id })],
  ['/tags/update', () => ({ path: 'early', name: 'late', with_children: true })],
  ['/tags/delete', () => ({ path: 'early', with_children: true })],
  ['/tags/merge', ({ tag, other }) => ({ id: tag, into_id: other })],
  ['/import', () => ({ bookmarks: [{ url: 'http://late.example' }] })],
  ['/import', () => ({ mode: 'replace', bookmarks: [{ url: 'http://late.example' }] })],
];

/** These writes wait for the account only if they have an `Idempotency-Key`. */
const KEYED_WRITES: [path: string, body: (ids: Ids) => object][] = [
  ['/tokens/revoke', ({ token: id }) => ({ id })],
  ['/sessions/revoke', ({ session: id }) => ({ id })],
  ['/sessions/revoke-others', () => ({})],
];

/** What the write might change. The revoked session is left out. */
const readAll = async (user: TestUser) => {
  const tables = ['accounts', 'bookmarks', 'tags', 'trash', 'changes', 'idempotency_keys', 'tokens'];
  const rows = tables.map(
    (table) => `
      select '${table}', to_jsonb(t) as row
      from ${table} t
      where user_id = ${user.id} and to_jsonb(t) ->> 'token_hash' is distinct from '${hashOf(user)}'`,
  );
  return await runOn(service.database.url, `${rows.join(' union all ')} order by 1, 2`);
};

const hashOf = ({ token }: TestUser) => `\\x${parseToken(token)!.hash.toString('hex')}`;

test.for([
  ...WRITES.map((write) => [...write, {}] as const),
  ...KEYED_WRITES.map((write) => [...write, { 'idempotency-key': 'late' }] as const),
])('%s changes nothing if its token is revoked while it waits', async ([path, bodyOf, headers]) => {
  const user = await service.session();
  const add = async (url: string) =>
    (await user.post('/bookmarks/add', { url, tags: ['early', 'other'] })).body;
  const bookmark = await add('http://early.example');
  const trashed = await add('http://trashed.example');
  await user.post('/bookmarks/delete', { id: trashed.id, trash: true });
  const token = (await user.post('/tokens/create', { name: 'mine' })).body;
  await service.session(user.email);
  const { sessions } = (await user.post('/sessions/list')).body;
  const before = await readAll(user);
  await using account = await holdAccount(service.database.url, user);
  const late = user.post(
    path,
    bodyOf({
      bookmark: bookmark.id,
      tag: bookmark.tags[0].id,
      other: bookmark.tags[1].id,
      trashed: trashed.id,
      token: token.id,
      session: sessions.find((each: { is_current: boolean }) => !each.is_current).id,
    }),
    { headers },
  );
  await untilBlocked(service.database.url);
  expect((await user.post('/logout')).status).toBe(200);
  await account.release();
  expect(await late).toMatchObject({ status: 401, body: { code: 'INVALID_TOKEN' } });
  expect(await readAll(user)).toEqual(before);
});
