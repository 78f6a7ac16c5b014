import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/driver/open.ts';
import { migrate } from '../../src/store/schema/migrations.ts';
import { buildNextFilters } from '../../src/store/sweep.ts';
import {
  BIG,
  type Collection,
  describeCollection,
  FILLING,
  KNOWLEDGE,
  type Knowledge,
  TABLES,
} from '../plans/collections.ts';
import { OPERATIONS } from '../plans/operations.ts';
import { createDatabase, openSnapshot, runOn } from '../support/database.ts';
import { startSystemPostgres } from '../support/system-postgres.ts';
import { openWatched, type RanStatement, type WatchedDatabase } from '../support/work.ts';

/**
 * Limits how many rows the statements of each operation may read, with and without statistics. Each limit must also
 * hold after other statements on the connection, because Postgres may keep a plan that it made for other values.
 */

interface Opened extends AsyncDisposable {
  url: string;
  name: string;
}

/**
 * A server that creates databases with the current schema, empty or as a copy of another database. Its role may use
 * `auto_explain`.
 */
interface Server extends AsyncDisposable {
  create(template?: Opened): Promise<Opened>;
}

const SERVERS: Readonly<Record<string, () => Promise<Server>>> = {
  'the Postgres of the tests': async () => ({
    create: (template) => createDatabase(template?.name),
    [Symbol.asyncDispose]: async () => {},
  }),
  'the Postgres of the system': async () => {
    const server = await startSystemPostgres();
    let count = 0;
    return {
      async create(template) {
        count += 1;
        const name = `plans_${count}`;
        const url = await server.createDatabase(name, 'postgres', template?.name);
        if (template === undefined) await migrate({ url });
        return { url, name, [Symbol.asyncDispose]: () => server.dropDatabase(name) };
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

/**
 * Postgres makes a new plan for each of the first five calls. From the sixth call on, it may keep one plan. The
 * measured call comes after six others.
 */
const WARM_UPS = 6;

describe.each(Object.keys(SERVERS))('%s, with statistics', (serverName) => {
  const opened = new AsyncDisposableStack();
  let server: Server;
  const filled = {} as Record<Knowledge['from'], Opened>;

  beforeAll(async () => {
    server = opened.use(await SERVERS[serverName]!());
    filled.others = opened.use(await server.create());
    for (const table of TABLES)
      await runOn(filled.others.url, `alter table ${table} set (autovacuum_enabled = off)`);
    for (const step of FILLING.others) await runOn(filled.others.url, step);
    filled.all = opened.use(await server.create(filled.others));
    for (const step of FILLING.all) await runOn(filled.all.url, step);
    await buildBigFilters(filled.all.url);
  });
  afterAll(() => opened.disposeAsync());

  describe.each(Object.entries(KNOWLEDGE))('%s', (knowledge, { from, steps, hasOldSnapshot }) => {
    testOperations(async () => {
      const database = await server.create(filled[from]);
      for (const step of steps) await runOn(database.url, step);
      if (from === 'others') await buildBigFilters(database.url);
      if (hasOldSnapshot) opened.use(await openSnapshot(database.url));
      return database;
    }, knowledge === 'fresh');
  });
});

/** Builds the pending Bloom filters of the big account, as a sweep does. The other accounts have no blocks of texts. */
async function buildBigFilters(url: string): Promise<void> {
  const database = await openDatabase({ url, max: 1 });
  try {
    while (await buildNextFilters(database, BIG.userId));
  } finally {
    await database.close();
  }
}

function testOperations(open: () => Promise<Opened>, isFresh: boolean): void {
  let opened: Opened;
  let watched: WatchedDatabase;
  const collections = new Map<number, Collection>();

  beforeAll(async () => {
    opened = await open();
    watched = await openWatched(opened.url);
  });
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
    const bound = isFresh ? atMost : atMostUnknown;
    expect(rows, describeStatements(statements)).toBeLessThanOrEqual(bound);
    const mayReadAll = bound >= BIG.bookmarks;
    const readWhole = statements.flatMap(({ text, indexesReadWhole }) =>
      indexesReadWhole.map((index) => `${index}: ${text}`),
    );
    if (!mayReadAll) expect(readWhole).toEqual([]);
  });
}

const describeStatements = (statements: RanStatement[]): string =>
  statements
    .toSorted((a, b) => b.rows - a.rows)
    .slice(0, 3)
    .map(({ rows, text, plan }) => `${rows} rows: ${text}\n${plan}`)
    .join('\n');
