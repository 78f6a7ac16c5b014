import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Preparation } from '../src/operations/import/preparation.ts';
import type { Database } from '../src/store/database.ts';
import { findKnownUrls, ImportChanged, importBookmarks, type PreparedImport } from '../src/store/imports.ts';
import { type TestUser, useService } from './support/service.ts';
import { openWatched } from './support/work.ts';

// Decision 20: which urls the user has is read before an import takes the account's lock, and holds when it is written.

const service = useService();

const COUNT = 400;
const entries = Array.from({ length: COUNT }, (_, n) => ({ url: `https://example.org/known/${n}` }));

async function makeUser(): Promise<TestUser> {
  const user = await service.user();
  await user.post('/import', { bookmarks: entries });
  return user;
}

/** A merge of what the user has, once its urls were looked for. */
async function prepareAgain(user: TestUser): Promise<PreparedImport> {
  const { database } = service.context;
  const findKnown = (urlKeys: readonly string[]) => findKnownUrls(database, user.id, urlKeys);
  const preparation = new Preparation({ replace: false, findKnown });
  await preparation.add(entries);
  return preparation.end();
}

async function write(
  user: TestUser,
  prepared: PreparedImport,
  database: Database = service.context.database,
) {
  const tokens = await service.context.database.sql<{ hash: Buffer }[]>`
    select token_hash as hash from tokens where user_id = ${user.id}`;
  const owner = { userId: user.id, hash: tokens[0]!.hash };
  return importBookmarks(database, owner, randomUUID(), prepared, 10_000, undefined);
}

const firstOf = async (user: TestUser): Promise<number> =>
  (await user.post('/bookmarks/list', { limit: 1 })).body.bookmarks[0].id;

describe('an import whose urls were all known when they were looked for', () => {
  const changes: Record<string, (user: TestUser) => Promise<unknown>> = {
    'one was deleted': async (user) => user.post('/bookmarks/delete', { id: await firstOf(user) }),
    'several were deleted': async (user) => user.post('/bookmarks/delete', { ids: [await firstOf(user)] }),
    'one has another url': async (user) =>
      user.post('/bookmarks/edit', { id: await firstOf(user), url: 'https://example.org/other' }),
    'all were replaced': (user) => user.post('/import', { bookmarks: [], mode: 'replace' }),
  };
  test.each(Object.keys(changes))('is prepared anew where meanwhile %s', async (name) => {
    const user = await makeUser();
    const prepared = await prepareAgain(user);
    await changes[name]!(user);
    await expect(write(user, prepared)).rejects.toThrow(ImportChanged);
  });

  test('skips them all where others were added, and others edited, whose urls stay', async () => {
    const user = await makeUser();
    const prepared = await prepareAgain(user);
    await user.post('/bookmarks/add', { url: 'https://example.org/new' });
    await user.post('/bookmarks/edit', { id: await firstOf(user), title: 'Another title' });
    expect(JSON.parse((await write(user, prepared)).result)).toEqual({ imported: 0, skipped: COUNT });
  });

  test('goes through none of them again where nothing was changed', async () => {
    const user = await makeUser();
    const prepared = await prepareAgain(user);
    const watched = await openWatched(service.database.url);
    onTestFinished(() => watched.close());
    const statements = await watched.watch(() => write(user, prepared, watched.database));
    const rows = statements.reduce((sum, statement) => sum + statement.rows, 0);
    expect(rows, statements.map(({ rows, text }) => `${rows} ${text}`).join('\n')).toBeLessThan(3 * COUNT);
  });
});
