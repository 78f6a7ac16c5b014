import { describe, expect, test } from 'vitest';
import { createDatabase, runOn } from './support/database.ts';
import { fill } from './support/fill.ts';
import type { ApiResponse } from './support/responses.ts';
import { startService, type TestUser, useService } from './support/service.ts';

// Tests that a page reads only about as many rows as it contains, even if the statistics of Postgres are old.

const COUNT = 20_000;

/** What the statistics say about `bookmarks` before the user's rows are added. */
const STATISTICS: Record<string, string> = {
  'the statistics say nothing': '',
  'the statistics say that each user has twenty bookmarks': `
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
  [
    'the second page of a search',
    301,
    async (user) => {
      const { body } = await user.post('/bookmarks/search', { per_page: 100, cursor: '' });
      // The first page reads 100 rows. The second page reads 101 rows to find its bookmarks and to see whether more
      // follow. Then it reads 100 rows to render its bookmarks.
      await user.post('/bookmarks/search', { per_page: 100, cursor: body.next_cursor });
    },
  ],
  ['export', COUNT, (user) => user.post('/export')],
];

/**
 * Returns how many rows of the table `bookmarks` have been read so far. A connection reports what it read only when the
 * connection ends, so this count is complete only after all connections have ended.
 */
async function countReadRows(databaseUrl: string): Promise<number> {
  const [{ count }] = (await runOn<{ count: string }>(
    databaseUrl,
    `select seq_tup_read + coalesce(idx_tup_fetch, 0) as count from pg_stat_user_tables where relname = 'bookmarks'`,
  )) as [{ count: string }];
  return Number(count);
}

test.for(
  Object.keys(STATISTICS).flatMap((known) => ASKED.map(([name, rows, ask]) => ({ known, name, rows, ask }))),
)('$name reads few rows more than it contains, if $known', async ({ known, rows, ask }) => {
  await using database = await createDatabase();
  await runOn(database.url, 'alter table bookmarks set (autovacuum_enabled = off)');
  await runOn(database.url, STATISTICS[known]!);
  let before: number;
  {
    // A pool of this size shares no connections. Otherwise a slow machine might send the same read twice.
    await using service = await startService({ databasePoolSize: 5 }, { database });
    const user = await service.user({ premium: true });
    await fill(database.url, user, COUNT);
    before = await countReadRows(database.url);
    await ask(user);
  }
  const read = (await countReadRows(database.url)) - before;
  expect(read).toBeGreaterThanOrEqual(rows);
  // A page may read a few rows more, for example to see whether another page follows.
  expect(read).toBeLessThan(rows * 1.1 + 10);
});

describe('a page of long bookmarks', () => {
  const service = useService();
  const MIB = 1_048_576;

  /** Adds bookmarks with comments of these lengths. Each character takes six bytes in JSON. */
  async function fillLong(user: TestUser, lengths: number[]): Promise<void> {
    await runOn(
      service.database.url,
      `insert into bookmarks (
        user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
      )
      select ${user.id}, now(), now(), gen_random_uuid(), 'https://example.org/', '', repeat(E'\\x01', length), '{}', '[]', ''
      from unnest(array[${lengths.join()}]) length;
      update accounts set bookmark_count = ${lengths.length} where user_id = ${user.id}`,
    );
  }

  /** Reads all pages, and returns the lengths of the comments on each page. */
  async function readLengths(read: (last: ApiResponse | undefined) => Promise<ApiResponse>) {
    const pages: number[][] = [];
    let last: ApiResponse | undefined;
    do {
      last = await read(last);
      expect(last.status).toBe(200);
      const { bookmarks } = last.body as { bookmarks: { comment: string }[] };
      if (bookmarks.length > 1) expect(Buffer.byteLength(last.text)).toBeLessThan(1.1 * MIB);
      pages.push(bookmarks.map(({ comment }) => comment.length));
    } while (last.body.has_more);
    return pages;
  }

  const WAYS: Record<string, (user: TestUser) => Promise<number[][]>> = {
    list: (user) =>
      readLengths((last) => user.post('/bookmarks/list', { limit: 500, cursor: last?.body.next_cursor })),
    sync: (user) =>
      readLengths((last) => user.post('/bookmarks/sync', { limit: 100, cursor: last?.body.cursor })),
    changes: (user) =>
      readLengths((last) => user.post('/bookmarks/changes', { limit: 500, cursor: last?.body.cursor })),
    export: async (user) => {
      const { bookmarks } = (await user.post('/export')).body as { bookmarks: { comment: string }[] };
      return [bookmarks.map(({ comment }) => comment.length)];
    },
    trash: async (user) => {
      const { bookmarks } = (await user.post('/export')).body as { bookmarks: { id: number }[] };
      await user.post('/bookmarks/delete', { ids: bookmarks.map(({ id }) => id), trash: true });
      const pages = await readLengths((last) =>
        user.post('/trash/list', { limit: 500, cursor: last?.body.next_cursor }),
      );
      return pages
        .flat()
        .reverse()
        .map((length) => [length]);
    },
  };

  test.for([
    ['many small bookmarks, then large ones', [...Array(90).fill(10), ...Array(60).fill(10_000)]],
    ['each just below its share of a page', Array(150).fill(1_600)],
    ['bookmarks that are larger than a page', [5, 200_000, 5, 5, 200_000]],
    ['exactly as many as fit on a page', Array(100).fill(1_000)],
  ] as [string, number[]][])(
    'is at most about 1 MiB long, and the next page continues after it: %s',
    async ([, lengths]) => {
      const user = await service.user({ premium: true });
      await fillLong(user, lengths);
      for (const [way, read] of Object.entries(WAYS)) expect((await read(user)).flat(), way).toEqual(lengths);
    },
  );

  test('is also limited if it contains edited bookmarks', async () => {
    const user = await service.user({ premium: true });
    await fillLong(user, Array(40).fill(1));
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const { bookmarks } = (await user.post('/bookmarks/list')).body as { bookmarks: { id: number }[] };
    const lengths = bookmarks.map((_, n) => (n < 20 ? 10 : 10_000));
    for (const [n, { id }] of bookmarks.entries()) {
      await user.post('/bookmarks/edit', { id, comment: '\u0001'.repeat(lengths[n]!) });
    }
    const pages = await readLengths((last) =>
      user.post('/bookmarks/changes', { limit: 500, cursor: last?.body.cursor ?? cursor }),
    );
    expect(pages.flat()).toEqual(lengths);
    expect(pages.length).toBeGreaterThan(1);
  });
});
