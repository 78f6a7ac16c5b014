import { describe, expect, inject, test } from 'vitest';
import { refreshStaleTags } from '../../src/process/sweeper.ts';
import { refreshTags } from '../../src/store/sweep.ts';
import { runOn } from '../support/database.ts';
import { findFaults } from '../support/invariants.ts';
import { startService, type TestUser, useService } from '../support/service.ts';
import { holdAccount } from '../support/sessions.ts';
import { until } from '../support/until.ts';

// Spec 4.3 on many bookmarks: a tag's rename and deletion are seen at once and everywhere, and are written by and by.

const service = useService();

const COUNT = 2_500;

/** A user with many bookmarks, of which all carry the tag `many` and every third one `third`. */
async function makeUser(count = COUNT) {
  const user = await service.user({ premium: true });
  const bookmarks = Array.from({ length: count }, (_, n) => ({
    url: `https://example.org/${n}`,
    tags: n % 3 === 0 ? ['many', 'third'] : ['many'],
  }));
  await user.post('/import', { bookmarks });
  const { tags } = (await user.post('/tags/list')).body;
  const idOf = (name: string): number => tags.find((tag: { name: string }) => tag.name === name).id;
  return { user, many: idOf('many'), third: idOf('third') };
}

const namesOf = ({ tags }: { tags: { name: string }[] }): string => tags.map(({ name }) => name).join();

/** How often each list of tags is shown, by every way in which bookmarks are read. */
async function countShown(user: TestUser): Promise<Record<string, Record<string, number>>> {
  const list: { tags: { name: string }[] }[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await user.post('/bookmarks/list', { limit: 500, ...(cursor && { cursor }) });
    list.push(...body.bookmarks);
    cursor = body.next_cursor;
    if (cursor === undefined) break;
  }
  const pages = {
    list,
    export: (await user.post('/export')).body.bookmarks,
    sync: (await user.post('/bookmarks/sync', { limit: 3 })).body.bookmarks,
    search: (await user.post('/bookmarks/search', { query: 'example', per_page: 3 })).body.bookmarks,
    newest: (await user.post('/bookmarks/search', { per_page: 3 })).body.bookmarks,
    changes: (await user.post('/bookmarks/changes', { limit: 3 })).body.bookmarks,
  };
  return Object.fromEntries(
    Object.entries(pages).map(([name, bookmarks]) => {
      const counts: Record<string, number> = {};
      for (const bookmark of bookmarks) counts[namesOf(bookmark)] = (counts[namesOf(bookmark)] ?? 0) + 1;
      return [name, counts];
    }),
  );
}

/** The same of pages whose first three and last three bookmarks hold one with `third` each. */
const shown = (plain: string, third: string) => {
  const whole = { [plain]: COUNT - Math.ceil(COUNT / 3), [third]: Math.ceil(COUNT / 3) };
  const few = { [plain]: 2, [third]: 1 };
  return { list: whole, export: whole, sync: few, search: few, newest: few, changes: few };
};

const isStale = async (user: TestUser): Promise<boolean> => {
  const [row] = await runOn<{ stale: boolean }>(
    service.database.url,
    `select stale_tags is not null as stale from accounts where user_id = ${user.id}`,
  );
  return row!.stale;
};

async function refreshAll(): Promise<void> {
  await refreshStaleTags(service.context);
  expect(await findFaults(service.database.url)).toEqual([]);
}

describe('a tag on many bookmarks', () => {
  test('is renamed for every reader at once, and is written afterwards', async () => {
    const { user, many } = await makeUser();
    await user.post('/tags/update', { id: many, name: 'renamed' });
    expect(await isStale(user)).toBe(true);
    expect(await countShown(user)).toEqual(shown('renamed', 'renamed,third'));
    // In the order of the new names.
    await user.post('/tags/update', { id: many, name: 'Z' });
    expect(await countShown(user)).toEqual(shown('Z', 'third,Z'));
    await refreshAll();
    expect(await isStale(user)).toBe(false);
    expect(await countShown(user)).toEqual(shown('Z', 'third,Z'));
  });

  test('is deleted for every reader at once, and its name is free', async () => {
    const { user, many } = await makeUser();
    await user.post('/tags/delete', { id: many });
    expect(await countShown(user)).toEqual(shown('', 'third'));
    expect((await user.post('/bookmarks/search', { tag: 'many' })).body.total).toBe(0);
    const untagged = COUNT - Math.ceil(COUNT / 3);
    expect((await user.post('/bookmarks/search', { untagged: true })).body.total).toBe(untagged);
    const { body } = await user.post('/tags/create', { name: 'many' });
    expect(body.id).not.toBe(many);
    expect(await countShown(user)).toEqual(shown('', 'third'));
    await refreshAll();
    expect(await countShown(user)).toEqual(shown('', 'third'));
    const { tags } = (await user.post('/tags/list')).body;
    expect(tags).toMatchObject([{ name: 'many', bookmark_count: 0 }, { name: 'third' }]);
  });

  test('is one change for those who follow changes', async () => {
    const { user, many } = await makeUser();
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    await user.post('/tags/update', { id: many, name: 'renamed' });
    await refreshAll();
    const { body } = await user.post('/bookmarks/changes', { cursor });
    expect(body).toMatchObject({
      bookmarks: [],
      deleted: [],
      tags: [{ id: many, name: 'renamed' }],
      has_more: false,
    });
  });

  test('is renamed again, and another one deleted, while bookmarks are being rewritten', async () => {
    const { user, many, third } = await makeUser(4_000);
    await user.post('/tags/update', { id: many, name: 'first' });
    expect(await refreshTags(service.context.database, user.id)).toBe(true);
    await user.post('/tags/update', { id: many, name: 'second' });
    await user.post('/tags/delete', { id: third });
    const expected = { second: 4_000 };
    expect((await countShown(user)).list).toEqual(expected);
    await refreshAll();
    expect((await countShown(user)).list).toEqual(expected);
  });
});

describe('merging a tag that many bookmarks carry', () => {
  test('puts the other one in its place on all of them, beside writers', async () => {
    const { user, many, third } = await makeUser(6_500);
    const { cursor } = (await user.post('/bookmarks/changes', { from: 'now' })).body;
    const added = Array.from({ length: 8 }, (_, n) =>
      user.post('/bookmarks/add', {
        url: `https://added.example/${n}`,
        tags: n % 2 === 0 ? ['many'] : ['third'],
      }),
    );
    const [merged] = await Promise.all([user.post('/tags/merge', { id: many, into_id: third }), ...added]);
    expect(merged.status).toBe(200);
    expect(merged.body).toMatchObject({ id: third, name: 'third' });
    const { tags } = (await user.post('/tags/list')).body;
    const left = tags.find(({ id }: { id: number }) => id === third);
    expect(left.bookmark_count).toBeGreaterThan(6_500);
    expect((await countShown(user)).list!.third).toBe(left.bookmark_count);
    expect(await findFaults(service.database.url)).toEqual([]);
    // Whoever follows changes hears of each bookmark that got another tag, and of the deleted one.
    const heard = new Set<number>();
    const deletedTags: number[] = [];
    for (let from = cursor, more = true; more; ) {
      const { body } = await user.post('/bookmarks/changes', { cursor: from, limit: 500 });
      for (const { id } of body.bookmarks) heard.add(id);
      deletedTags.push(...body.deleted_tags);
      [from, more] = [body.cursor, body.has_more];
    }
    expect(heard.size).toBeGreaterThan(4_000);
    expect(deletedTags).toContain(many);
  });

  test('goes on where it broke off, and every step is true by itself', async () => {
    const { user, many, third } = await makeUser(250);
    const { database } = service.context;
    const [token] = await database.sql<{ hash: Buffer }[]>`
      select token_hash as hash from tokens where user_id = ${user.id}`;
    const [step] = await database.sql<{ outcome: string | null; tag: string | null }[]>`
      select outcome, tag from merge_tags(${user.id}, ${token!.hash}, ${many}, ${third}, 100)`;
    expect(step).toEqual({ outcome: null, tag: null });
    expect(await findFaults(service.database.url)).toEqual([]);
    expect((await countShown(user)).list).toMatchObject({ third: 100, many: 100 });
    expect((await user.post('/tags/merge', { id: many, into_id: third })).body.bookmark_count).toBe(250);
    expect((await user.post('/tags/merge', { id: many, into_id: third })).status).toBe(404);
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('two that work against each other both end', async () => {
    const { user, many, third } = await makeUser(4_500);
    const ends = await Promise.all([
      user.post('/tags/merge', { id: many, into_id: third }),
      user.post('/tags/merge', { id: third, into_id: many }),
    ]);
    for (const { status } of ends) expect([200, 404, 503]).toContain(status);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

describe('while the tags of bookmarks are stale', () => {
  test('what is added, edited, imported and deleted is as it has to be', async () => {
    const { user, many, third } = await makeUser();
    await user.post('/tags/update', { id: many, name: 'renamed' });
    await user.post('/tags/delete', { id: third });
    const [first, second, last] = (await user.post('/bookmarks/list')).body.bookmarks;
    const edited = await user.post('/bookmarks/edit', { id: first.id, title: 'Edited' });
    expect(edited.body).toMatchObject({ title: 'Edited', tags: [{ name: 'renamed' }] });
    const retagged = await user.post('/bookmarks/edit', { id: second.id, tags: ['renamed', 'other'] });
    expect(namesOf(retagged.body)).toBe('other,renamed');
    await user.post('/bookmarks/delete', { id: last.id });
    expect(namesOf((await user.post('/bookmarks/add', { url: 'https://a/', tags: ['RENAMED'] })).body)).toBe(
      'renamed',
    );
    await user.post('/import', { bookmarks: [{ url: 'https://b/', tags: ['renamed', 'third'] }] });
    const expected = { renamed: COUNT - 1, 'other,renamed': 1, 'renamed,third': 1 };
    expect((await countShown(user)).list).toEqual(expected);
    await refreshAll();
    expect((await countShown(user)).list).toEqual(expected);
  });

  test('bookmarks that still carry a deleted one are deleted together, and bring no tag back', async () => {
    const { user, many, third } = await makeUser();
    await user.post('/tags/delete', { id: many });
    await user.post('/tags/delete', { id: third });
    expect(await isStale(user)).toBe(true);
    const ids = (await user.post('/bookmarks/list', { limit: 4 })).body.bookmarks.map(
      ({ id }: { id: number }) => id,
    );
    const deleted = await user.post('/bookmarks/delete', { ids });
    expect([deleted.status, deleted.body]).toEqual([200, { deleted: true, count: 4, missing: [] }]);
    expect((await user.post('/tags/list')).body.tags).toEqual([]);
    await refreshAll();
  });

  test('a tag that was deleted counts for nothing where a bookmark has as many as it may', async () => {
    const user = await service.user({ premium: true });
    const full = ['many', ...Array.from({ length: 99 }, (_, n) => `other ${n}`)];
    const bookmarks = Array.from({ length: 600 }, (_, n) => ({
      url: `https://example.org/${n}`,
      tags: n === 0 ? full : ['many'],
    }));
    await user.post('/import', { bookmarks });
    const { tags } = (await user.post('/tags/list')).body;
    await user.post('/tags/delete', { id: tags.find(({ name }: { name: string }) => name === 'many').id });
    expect(await isStale(user)).toBe(true);
    const [{ id }] = (await user.post('/bookmarks/list', { limit: 1 })).body.bookmarks;
    expect((await user.post('/bookmarks/edit', { ids: [id], add_tags: ['one more'] })).status).toBe(200);
    const [{ tags: shownTags }] = (await user.post('/bookmarks/list', { limit: 1 })).body.bookmarks;
    expect(shownTags).toHaveLength(100);
    await refreshAll();
  });

  test('a replace puts an end to it, and so does the deletion of the user', async () => {
    const [{ user, many }, other] = [await makeUser(), await makeUser()];
    await user.post('/tags/update', { id: many, name: 'renamed' });
    await other.user.post('/tags/delete', { id: other.many });
    await user.post('/import', { mode: 'replace', bookmarks: [{ url: 'https://a/', tags: ['renamed'] }] });
    await service.context.database.sql`select delete_user(${other.user.email})`;
    await refreshAll();
    expect((await countShown(user)).list).toEqual({ renamed: 1 });
    expect(await refreshTags(service.context.database, other.user.id)).toBe(false);
  });

  test('rewriting waits for no other writer, and none of two replicas does the work of the other', async () => {
    const { user, many } = await makeUser(4_000);
    await user.post('/tags/update', { id: many, name: 'renamed' });
    const { database } = service.context;
    {
      await using _ = await holdAccount(service.database.url, user);
      expect(await refreshTags(database, user.id)).toBe(true);
    }
    // A batch of another replica's has just been written.
    expect(await Promise.all([refreshTags(database, user.id), refreshTags(database, user.id)])).toEqual([
      true,
      true,
    ]);
    const [row] = await runOn<{ rewritten: number }>(
      service.database.url,
      `select count(*)::int as rewritten from bookmarks where user_id = ${user.id} and tags like '%renamed%'`,
    );
    expect(row!.rewritten).toBe(500);
    await refreshAll();
  });

  test('every replica sees to it without being asked', async () => {
    await using running = await startService({}, { database: service.database });
    const { user, many } = await makeUser();
    await user.post('/tags/update', { id: many, name: 'renamed' });
    const { startSweeper } = await import('../../src/process/sweeper.ts');
    const stop = startSweeper(running.context, false);
    await until(async () => !(await isStale(user)));
    await stop();
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

// Of a sharded database each node has an index of its own.
test.runIf(inject('citusUrl') === undefined)(
  'what waits to be put into the index of tags, which every search by a tag reads, is 17 pages at most',
  async () => {
    const { user } = await makeUser();
    await runOn(
      service.database.url,
      `insert into bookmarks (user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text)
    select user_id, created_at, updated_at, gen_random_uuid(), url, title, comment, tag_ids, tags, search_text
    from bookmarks
    where user_id = ${user.id}`,
    );
    const rows = await runOn<{ pages: string }>(
      service.database.url,
      "select gin_clean_pending_list('bookmarks_tag_ids') as pages",
    );
    expect(Number(rows[0]!.pages)).toBeLessThanOrEqual(17);
  },
);
