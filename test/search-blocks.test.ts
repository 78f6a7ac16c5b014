import { expect, test } from 'vitest';
import { bloomFilterBits } from '../src/domain/bloom-filters.ts';
import { SORTS, type Sort } from '../src/domain/bounds.ts';
import { buildPendingFilters } from '../src/process/pending-filters.ts';
import { buildNextFilters } from '../src/store/sweep.ts';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';
import { holdLock } from './support/sessions.ts';
import { makeRandom, makeTexts } from './support/texts.ts';

// To search for words, the service reads blocks of texts in addition to the bookmarks. A search must always find
// exactly what the bookmarks contain.

const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const service = useService();
const { floor } = Math;

/** Search terms of one and of several letters, in several scripts. Some are in many texts and some in few. */
const QUERIES = [
  'zzyzx',
  'github',
  'a',
  'an',
  'of se',
  'https com e',
  'а',
  'の',
  'one two three four',
  'x-%_\\',
];

/**
 * Phrases that many bookmarks would contain if the url and the title were a single text. A phrase must not match across
 * the two fields.
 */
const PHRASES = ['e c', 'of the', 'a github'];

/** Returns the ids of the bookmarks that contain all terms. Reads only the rows of `bookmarks`, and no block. */
async function scan(user: TestUser, terms: readonly string[]): Promise<number[]> {
  const conditions = terms.map((term) => `strpos(search_text, '${term}') > 0`);
  const rows = await runOn<{ id: string }>(
    service.database.url,
    `select id from bookmarks where user_id = ${user.id} and ${conditions.join(' and ')} order by id desc`,
  );
  return rows.map(({ id }) => Number(id));
}

async function expectFoundAsScanned(user: TestUser, query: string, phrases: string[] = []): Promise<void> {
  const expected = await scan(user, [...query.split(' '), ...phrases]);
  const { body } = await user.post('/bookmarks/search', { query, phrases, per_page: 100 });
  const ids = body.bookmarks.map(({ id }: { id: number }) => id);
  expect([query, phrases, body.total, ids]).toEqual([
    query,
    phrases,
    expected.length,
    expected.slice(0, 100),
  ]);
  const oldest = await user.post('/bookmarks/search', { query, phrases, per_page: 100, sort: 'oldest' });
  expect(oldest.body.bookmarks.map(({ id }: { id: number }) => id)).toEqual(
    expected.toReversed().slice(0, 100),
  );
}

interface Filters {
  phrases: string[];
  tags: string[];
  without_phrases: string[];
  any: { phrases: string[]; tags: string[] }[];
}

/** Texts and tags, some of which are in many bookmarks, and some in few or none. */
const TEXTS = [
  'e',
  'an',
  'github',
  'https',
  'of the',
  'zzyzx',
  'x-%_\\',
  '_',
  'の',
  'https://github.com/a',
  'Á',
];
const TAGS = ['List 0', 'list 1', 'Software', 'OTHER', 'unknown'];

/** Orders of walks. A walk by id tests each row, and all other searches read blocks. */
const WALKS: readonly Sort[] = [...SORTS, 'newest', 'oldest'];

/** Draws filters of texts and tags, in all combinations. */
function drawFilters(random: () => number, word: string): Filters {
  const draw = (values: readonly string[], most: number) =>
    Array.from({ length: floor(random() * (most + 1)) }, () => values[floor(random() * values.length)]!);
  const texts = [...TEXTS, word];
  const alternatives = Array.from({ length: floor(random() * 4) }, () => ({
    phrases: draw(texts, 2),
    tags: draw(TAGS, random() < 0.5 ? 0 : 2),
  }));
  return {
    phrases: draw(texts, random() < 0.6 ? 0 : 2),
    tags: draw(TAGS, random() < 0.7 ? 0 : 1),
    without_phrases: draw(texts, random() < 0.5 ? 0 : 2),
    any: alternatives.filter(({ phrases, tags }) => phrases.length + tags.length > 0),
  };
}

/** Returns the ids of the bookmarks that pass the filters, newest first. Tests every bookmark in JavaScript. */
async function filterAll(user: TestUser, filters: Filters): Promise<number[]> {
  const rows = await runOn<{ id: string; text: string; tags: { name: string }[] }>(
    service.database.url,
    `select id, search_text as text, tags::json from bookmarks where user_id = ${user.id} order by id desc`,
  );
  const passes = rows.filter(({ text, tags: own }) => {
    const contains = (phrase: string) => text.includes(phrase.toLowerCase());
    const has = (tag: string) => own.some(({ name }) => name.toLowerCase() === tag.toLowerCase());
    const { phrases, tags, without_phrases, any } = filters;
    const isMatch = (one: Pick<Filters, 'phrases' | 'tags'>) =>
      one.phrases.every(contains) && one.tags.every(has);
    return (
      isMatch({ phrases, tags }) && !without_phrases.some(contains) && (any.length === 0 || any.some(isMatch))
    );
  });
  return passes.map(({ id }) => Number(id));
}

/** Expects the same bookmarks on the first page, and on the first pages of a walk by cursor in the order `sort`. */
async function expectFiltered(user: TestUser, filters: Filters, sort: Sort): Promise<void> {
  const expected = await filterAll(user, filters);
  const { body } = await user.post('/bookmarks/search', { ...filters, per_page: 100 });
  const ids = body.bookmarks.map(({ id }: { id: number }) => id);
  expect([filters, body.total, ids]).toEqual([filters, expected.length, expected.slice(0, 100)]);
  const walked: number[] = [];
  let cursor: string | undefined = '';
  for (let page = 1; page <= 4 && cursor !== undefined; page += 1) {
    const { body } = await user.post('/bookmarks/search', { ...filters, sort, cursor, per_page: 50 });
    expect([filters, sort, body.total]).toEqual([filters, sort, expected.length]);
    walked.push(...body.bookmarks.map(({ id }: { id: number }) => id));
    cursor = body.next_cursor;
  }
  const inOrder = sort === 'oldest' ? expected.toReversed() : expected;
  const isOrderOfIds = sort === 'newest' || sort === 'oldest';
  // The other orders are tested in spec-4-2-search-options.test.ts.
  const wanted = isOrderOfIds ? inOrder.slice(0, 200) : walked.filter((id) => expected.includes(id));
  expect([filters, sort, walked]).toEqual([filters, sort, wanted]);
  expect(new Set(walked).size).toBe(Math.min(200, expected.length));
}

async function readIds(user: TestUser): Promise<number[]> {
  const rows = await runOn<{ id: string }>(
    service.database.url,
    `select id from bookmarks where user_id = ${user.id} order by id`,
  );
  return rows.map(({ id }) => Number(id));
}

async function countBlocks(user: TestUser): Promise<number> {
  const [row] = await runOn<{ blocks: number }>(
    service.database.url,
    `select count(*)::int as blocks from search_blocks where user_id = ${user.id}`,
  );
  return row!.blocks;
}

/** Returns how many blocks have a Bloom filter, and how many do not. */
async function countFilters(user: TestUser): Promise<[built: number, pending: number]> {
  const [row] = await runOn<{ built: number; pending: number }>(
    service.database.url,
    `select count(bits)::int as built, count(*)::int - count(bits)::int as pending
    from search_signatures where user_id = ${user.id}`,
  );
  return [row!.built, row!.pending];
}

const entries = (count: number, next: ReturnType<typeof makeTexts>) => Array.from({ length: count }, next);

/** Draws a random write that changes what searches find. */
function drawWrite(random: () => number, next: ReturnType<typeof makeTexts>) {
  const pick = (ids: number[]) => ids[floor(random() * ids.length)] ?? 1;
  const dice = random();
  return async (user: TestUser): Promise<void> => {
    const ids = await readIds(user);
    const { title, comment, url } = next();
    const several = Array.from({ length: 1 + floor(random() * 90) }, () => pick(ids));
    if (dice < 0.3) for (let n = 0; n < 20; n += 1) await user.post('/bookmarks/add', next());
    else if (dice < 0.4) await user.post('/bookmarks/edit', { id: pick(ids), title, comment });
    else if (dice < 0.5) await user.post('/bookmarks/edit', { id: pick(ids), url, tags: ['other'] });
    else if (dice < 0.55) await user.post('/bookmarks/edit', { id: pick(ids), comment: comment.repeat(60) });
    else if (dice < 0.65) await user.post('/bookmarks/delete', { id: pick(ids) });
    else if (dice < 0.7) await user.post('/bookmarks/delete', { ids: [...new Set(several)] });
    else if (dice < 0.8) await user.post('/import', { bookmarks: entries(floor(random() * 300), next) });
    else if (dice < 0.85)
      await user.post('/import', { bookmarks: entries(floor(random() * 200), next), mode: 'replace' });
    // Deletes more bookmarks than a block contains, so that a whole block is deleted.
    else await user.post('/bookmarks/delete', { ids: ids.slice(0, 70) });
  };
}

test(`a search finds what the bookmarks contain, after any writes (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  const next = makeTexts(seed);
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(400, next) });
  await buildPendingFilters(service.context);
  expect((await countFilters(user))[0]).toBeGreaterThan(2);
  for (let step = 0; step < 40; step += 1) {
    await drawWrite(random, next)(user);
    if (random() < 0.5) await buildPendingFilters(service.context);
    expect(await findFaults(service.database.url)).toEqual([]);
    await expectFoundAsScanned(user, QUERIES[step % QUERIES.length]!);
    const word =
      next()
        .comment.split(' ')[0]!
        .toLowerCase()
        .replace(/[^\p{L}]/gu, '') || 'b';
    await expectFoundAsScanned(user, word);
    await expectFoundAsScanned(user, 'e', [PHRASES[step % PHRASES.length]!]);
    await expectFiltered(user, drawFilters(random, word), WALKS[step % WALKS.length]!);
  }
});

test.each(['%', '_', '\\', '%_', '\\%', '_x', '5%'])(
  'in a block, %j is found only literally',
  async (term) => {
    const user = await service.user({ premium: true });
    const titles = ['a', '5% off', 'snake_x', 'C:\\', '\\%', '%_'];
    const entries = Array.from({ length: 130 }, (_, n) => ({
      url: `https://a.example/${n}`,
      title: titles[n % titles.length]!,
    }));
    await user.post('/import', { bookmarks: entries });
    expect(await countBlocks(user)).toBeGreaterThan(0);
    await expectFoundAsScanned(user, term);
    const { total } = (await user.post('/bookmarks/search', { query: term })).body;
    expect(total).toBe(entries.filter(({ title }) => title.includes(term)).length);
  },
);

test('during many writes, no reader sees a block that differs from the bookmarks', async () => {
  const next = makeTexts(seed + 1);
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(300, next) });
  let isWriting = true;
  const write = async (n: number): Promise<void> => {
    const random = makeRandom(seed + n);
    for (let step = 0; step < 15; step += 1) await drawWrite(random, next)(user);
  };
  const writers = Promise.all([2, 3, 4].map(write)).finally(() => {
    isWriting = false;
  });
  let reads = 0;
  while (isWriting) {
    const term = ['e', 'an', 'http'][reads % 3]!;
    const built = buildPendingFilters(service.context);
    // This is one statement, so it reads one snapshot.
    const [row] = await runOn<{ isSame: boolean }>(
      service.database.url,
      `select found = scanned as "isSame"
      from (
        select find_texts(${user.id}, '{${term}}', null, '{${bloomFilterBits([term])}}', null) as found, array(
          select id from bookmarks where user_id = ${user.id} and strpos(search_text, '${term}') > 0 order by id desc
        ) as scanned
      ) both_ways`,
    );
    expect(row).toMatchObject({ isSame: true });
    await built;
    reads += 1;
  }
  await writers;
  expect(reads).toBeGreaterThan(5);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('bookmarks that are added one by one are packed into blocks, with texts of any length', async () => {
  const user = await service.user({ premium: true });
  const short = (n: number) => ({ url: `http://a/${n}` });
  for (let n = 0; n < 130; n += 1) await user.post('/bookmarks/add', short(n));
  expect(await countBlocks(user)).toBe(2);
  // The first text fills a block on its own. Texts of a few letters follow.
  const long = {
    url: `http://b/${'x'.repeat(8_000)}`,
    title: '書'.repeat(2_048),
    comment: 'é'.repeat(10_000),
  };
  await user.post('/bookmarks/add', long);
  for (let n = 130; n < 260; n += 1) await user.post('/bookmarks/add', short(n));
  expect(await countBlocks(user)).toBeGreaterThanOrEqual(4);
  for (const query of ['http', '書書', 'éé', 'a/1', '/259', 'xé']) await expectFoundAsScanned(user, query);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('an import counts as unpacked what was unpacked before it', async () => {
  const user = await service.user();
  const next = makeTexts(4);
  for (const count of [40, 10]) await user.post('/import', { bookmarks: entries(count, next) });
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('every page of all bookmarks is correct, counted from either end, after any deletions', async () => {
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(2_600, makeTexts(seed)) });
  const all = await readIds(user);
  const [random, gone] = [makeRandom(seed), new Set<number>()];
  for (let n = 0; n < 300; n += 1) gone.add(all[floor(random() ** 2 * all.length)]!);
  await user.post('/bookmarks/delete', { ids: [...gone, ...all.slice(1_000, 1_200)].slice(0, 500) });
  for (let n = 0; n < 20; n += 1) await user.post('/bookmarks/add', { url: `http://new/${n}` });
  const newest = (await readIds(user)).reverse();
  for (let page = 1; page <= newest.length / 30 + 2; page += 1) {
    const { body } = await user.post('/bookmarks/search', { per_page: 30, page });
    const ids = body.bookmarks.map(({ id }: { id: number }) => id);
    expect([page, ids]).toEqual([page, newest.slice((page - 1) * 30, page * 30)]);
    expect([body.total, body.has_more]).toEqual([newest.length, page * 30 < newest.length]);
  }
});

test('a term matches neither across two bookmarks nor across two fields', async () => {
  const user = await service.user({ premium: true });
  const bookmarks = Array.from({ length: 70 }, (_, n) => ({
    url: `http://first/${n}`,
    title: 'second',
    comment: 'third',
  }));
  await user.post('/import', { bookmarks });
  expect(await countBlocks(user)).toBeGreaterThan(0);
  for (const query of ['thirdhttp', 'secondthird', '1second', 'firsthttp']) {
    expect((await user.post('/bookmarks/search', { query })).body.total).toBe(0);
  }
  expect((await user.post('/bookmarks/search', { query: 'third second first' })).body.total).toBe(70);
});

test('the blocks of a deleted user are deleted', async () => {
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(100, makeTexts(5)) });
  expect(await countBlocks(user)).toBeGreaterThan(0);
  await service.context.database.sql`select delete_user(${user.email})`;
  expect(await countBlocks(user)).toBe(0);
});

test('a filter is not written if its texts were edited while it was built', async () => {
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(100, makeTexts(6)) });
  const [block] = await runOn<{ lastId: string; edits: number }>(
    service.database.url,
    `select last_id as "lastId", edits from read_pending_filters(${user.id}, 1, 65536)`,
  );
  const [id] = (await readIds(user)).filter((id) => id <= Number(block!.lastId));
  await user.post('/bookmarks/edit', { id, title: 'zzyzx' });
  const [row] = await runOn<{ built: string }>(
    service.database.url,
    `select write_filters(${user.id}, '{${block!.lastId}}', '{${block!.edits}}', '{AAAA}') as built`,
  );
  expect(row!.built).toBe('0');
  await buildPendingFilters(service.context);
  expect((await countFilters(user))[1]).toBe(0);
  await expectFoundAsScanned(user, 'zzyzx');
});

test('an edited text is found before its block is rebuilt, and the new filter no longer contains a deleted text', async () => {
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(200, makeTexts(7)) });
  await buildPendingFilters(service.context);
  const [built, pending] = await countFilters(user);
  expect([built > 1, pending]).toEqual([true, 0]);
  const [first, second] = await readIds(user);
  await user.post('/bookmarks/delete', { id: second });
  expect(await countFilters(user)).toEqual([built, 0]);
  await user.post('/bookmarks/edit', { id: first, comment: 'now with zzyzx' });
  expect(await countFilters(user)).toEqual([built - 1, 1]);
  await expectFoundAsScanned(user, 'zzyzx');
  await buildPendingFilters(service.context);
  expect(await countFilters(user)).toEqual([built, 0]);
  await expectFoundAsScanned(user, 'zzyzx');
});

test('a block that a writer has locked gets its filter later, and nothing waits for the lock', async () => {
  const user = await service.user({ premium: true });
  await user.post('/import', { bookmarks: entries(1_000, makeTexts(8)) });
  const [, pending] = await countFilters(user);
  {
    await using writer = await holdLock(
      service.database.url,
      `update search_signatures set edits = edits + 1 where user_id = ${user.id}`,
    );
    expect(await buildNextFilters(service.context.database, user.id)).toBe(false);
    await writer.commit();
  }
  expect(await countFilters(user)).toEqual([0, pending]);
  await Promise.all([buildPendingFilters(service.context), buildPendingFilters(service.context)]);
  expect(await countFilters(user)).toEqual([pending, 0]);
  expect(await findFaults(service.database.url)).toEqual([]);
});

test('blocks of long texts and of control characters are searched correctly', async () => {
  const user = await service.user({ premium: true });
  const long = Array.from({ length: 70 }, (_, n) => ({
    url: `http://long/${n}`,
    comment: `${n} `.repeat(300),
  }));
  await user.post('/import', { bookmarks: [...long, ...entries(70, makeTexts(9))] });
  const ids = await readIds(user);
  for (const id of ids.slice(0, 8)) await user.post('/bookmarks/edit', { id, comment: 'é'.repeat(9_000) });
  await user.post('/bookmarks/edit', { id: ids[0], title: '\u0001\u0002 x\u0001y 𝒳𝒴𝒵' });
  await buildPendingFilters(service.context);
  expect((await countFilters(user))[1]).toBe(0);
  for (const query of ['éé', 'http', '\u0001', 'x\u0001y', '𝒴𝒵', '\u0002 𝒳'])
    await expectFoundAsScanned(user, query);
  expect(await findFaults(service.database.url)).toEqual([]);
});
