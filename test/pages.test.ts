import { expect, test } from 'vitest';
import { createDatabase, runOn } from './support/database.ts';
import { fill } from './support/fill.ts';
import { startService, type TestUser } from './support/service.ts';

// A page costs what it holds, whatever Postgres knows of its user: its statistics are from before the last import.

const COUNT = 20_000;

/** What Postgres knows of the bookmarks when the user's come. */
const STATISTICS: Record<string, string> = {
  'nothing is known': '',
  'a user is known to have twenty': `
    insert into users (email, email_key) select n, n from generate_series(1, 1000) n;
    insert into accounts (user_id, bookmark_count) select id, 20 from users;
    insert into bookmarks (
      user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
    )
    select id, now(), now(), gen_random_uuid(), 'https://example.org/' || n, 'Bookmark', '', '{}', '[]', ''
    from generate_series(1, 20) n cross join users;
    analyze bookmarks`,
};

const ASKED: [string, number, (user: TestUser) => Promise<unknown>][] = [
  ['list', 500, (user) => user.post('/bookmarks/list', { limit: 500 })],
  ['sync', 100, (user) => user.post('/bookmarks/sync', { cursor: 0, limit: 100 })],
  ['search for everything', 100, (user) => user.post('/bookmarks/search', { per_page: 100 })],
  ['export', COUNT, (user) => user.post('/export')],
];

/** Rows of bookmarks that statements have read; connections that have ended have told all of theirs. */
async function countReadRows(databaseUrl: string): Promise<number> {
  const [{ count }] = (await runOn<{ count: string }>(
    databaseUrl,
    `select seq_tup_read + coalesce(idx_tup_fetch, 0) as count from pg_stat_user_tables where relname = 'bookmarks'`,
  )) as [{ count: string }];
  return Number(count);
}

test.for(
  Object.keys(STATISTICS).flatMap((known) => ASKED.map(([name, rows, ask]) => ({ known, name, rows, ask }))),
)('$name reads no more rows than it holds, where $known', async ({ known, rows, ask }) => {
  await using database = await createDatabase();
  await runOn(database.url, 'alter table bookmarks set (autovacuum_enabled = off)');
  await runOn(database.url, STATISTICS[known]!);
  let before: number;
  {
    await using service = await startService({}, { database });
    const user = await service.user({ premium: true });
    await fill(database.url, user, COUNT);
    before = await countReadRows(database.url);
    await ask(user);
  }
  const read = (await countReadRows(database.url)) - before;
  expect(read).toBeGreaterThanOrEqual(rows);
  // The way to a page's end, and whether there is more.
  expect(read).toBeLessThan(rows * 1.1 + 10);
});
