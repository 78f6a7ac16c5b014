import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate } from '../src/store/migrations.ts';
import { BIG, type Collection, describeCollection, KNOWLEDGE, TABLES } from './plans/collections.ts';
import { OPERATIONS } from './plans/operations.ts';
import { createDatabase, runOn } from './support/database.ts';
import { startSystemPostgres } from './support/system-postgres.ts';
import { openWatched, type RanStatement, type WatchedDatabase } from './support/work.ts';

/**
 * What a statement goes through is bounded by what it is about, whatever Postgres knows of the tables and whatever the
 * connection did before: from the sixth call on Postgres may keep a plan that was made for other values.
 */

interface Opened extends AsyncDisposable {
  url: string;
}

/** Migrated, empty databases, of a role that may explain what others run. */
const SERVERS: Readonly<Record<string, () => Promise<Opened>>> = {
  'the Postgres of the tests': createDatabase,
  'the Postgres of the system': async () => {
    const server = await startSystemPostgres();
    const url = await server.createDatabase('plans', 'postgres');
    await migrate({ url });
    return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  },
};

const CASES = Object.keys(SERVERS).flatMap((server) =>
  Object.keys(KNOWLEDGE).map((knowledge) => ({ server, knowledge })),
);

const WARM_UPS = 10;

describe.each(CASES)('$server, with statistics $knowledge', ({ server, knowledge }) => {
  let opened: Opened;
  let watched: WatchedDatabase;
  const collections = new Map<number, Collection>();

  beforeAll(async () => {
    opened = await SERVERS[server]!();
    for (const table of TABLES)
      await runOn(opened.url, `alter table ${table} set (autovacuum_enabled = off)`);
    for (const step of KNOWLEDGE[knowledge]!) await runOn(opened.url, step);
    watched = await openWatched(opened.url);
  }, 120_000);
  afterAll(async () => {
    await watched?.close();
    await opened?.[Symbol.asyncDispose]();
  });

  async function collectionOf(userId: number): Promise<Collection> {
    const known = collections.get(userId);
    if (known !== undefined) return known;
    const rows = await runOn<{ id: string }>(
      opened.url,
      `select id from bookmarks where user_id = ${userId} order by id`,
    );
    const collection = describeCollection(
      userId,
      rows.map(({ id }) => Number(id)),
    );
    collections.set(userId, collection);
    return collection;
  }

  test.each(OPERATIONS)('$name', async ({ run, atMost, atMostUnknown = atMost }) => {
    for (let n = 0; n < WARM_UPS; n += 1) await run(watched.database, await collectionOf(2 + n), n);
    const big = await collectionOf(BIG.userId);
    const statements = await watched.watch(() => run(watched.database, big, WARM_UPS));
    expect(statements.length).toBeGreaterThan(0);
    const rows = statements.reduce((sum, statement) => sum + statement.rows, 0);
    const bound = knowledge === 'fresh' ? atMost : atMostUnknown;
    expect(rows, describeStatements(statements)).toBeLessThanOrEqual(bound);
  });
});

const describeStatements = (statements: RanStatement[]): string =>
  statements
    .toSorted((a, b) => b.rows - a.rows)
    .slice(0, 3)
    .map(({ rows, text, plan }) => `${rows} rows: ${text}\n${plan}`)
    .join('\n');

test('what a write adds to the index of tags is in its place at once, and in no list that searches go through', async () => {
  await using database = await createDatabase();
  await runOn(database.url, KNOWLEDGE['of a handful of other accounts']![0]!);
  const [row] = await runOn<{ pages: string }>(
    database.url,
    "select gin_clean_pending_list('bookmarks_tag_ids') as pages",
  );
  expect(row).toEqual({ pages: '0' });
});
