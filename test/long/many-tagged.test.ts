import { describe, expect, inject, test } from 'vitest';
import { runOn } from '../support/database.ts';
import { findFaults } from '../support/invariants.ts';
import { type TestUser, useService } from '../support/service.ts';

// Tests section 4.3 of docs/contract.md (tags) with tags that many bookmarks carry.

const service = useService();

const COUNT = 2_500;

/** Creates a user with many bookmarks. All of them carry the tag `many`, and every third one also carries `third`. */
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

/** Counts how often each list of tags appears, for every way to read bookmarks. */
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

/** Returns the expected counts. One of the first three bookmarks carries `third`, and so does one of the last three. */
const shown = (plain: string, third: string) => {
  const whole = { [plain]: COUNT - Math.ceil(COUNT / 3), [third]: Math.ceil(COUNT / 3) };
  const few = { [plain]: 2, [third]: 1 };
  return { list: whole, export: whole, sync: few, search: few, newest: few, changes: few };
};

describe('a tag on many bookmarks', () => {
  test('is renamed for every reader, and is sorted by its new name', async () => {
    const { user, many } = await makeUser();
    await user.post('/tags/update', { id: many, name: 'renamed' });
    expect(await countShown(user)).toEqual(shown('renamed', 'renamed,third'));
    await user.post('/tags/update', { id: many, name: 'Z' });
    expect(await countShown(user)).toEqual(shown('Z', 'third,Z'));
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('is deleted for every reader, and its name is free again', async () => {
    const { user, many } = await makeUser();
    await user.post('/tags/delete', { id: many });
    const untagged = COUNT - Math.ceil(COUNT / 3);
    expect((await user.post('/bookmarks/search', { untagged: true })).body.total).toBe(untagged);
    expect((await user.post('/tags/create', { name: 'many' })).body.id).not.toBe(many);
    expect(await countShown(user)).toEqual(shown('', 'third'));
    expect(await findFaults(service.database.url)).toEqual([]);
  });

  test('on more than 10,000 bookmarks is found by key, and deleted from all of them', async () => {
    const { user, many } = await makeUser(9_000);
    const more = Array.from({ length: 3_000 }, (_, n) => ({
      url: `https://more.example/${n}`,
      tags: ['many'],
    }));
    await user.post('/import', { bookmarks: more });
    await user.post('/tags/update', { id: many, name: 'renamed' });
    expect((await countShown(user)).list).toEqual({ renamed: 9_000, 'renamed,third': 3_000 });
    await user.post('/tags/delete', { id: many });
    expect((await countShown(user)).list).toEqual({ '': 9_000, third: 3_000 });
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

describe('merging a tag that many bookmarks carry', () => {
  test('replaces it on all of them, while clients write', async () => {
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
    // A client that follows changes receives the bookmarks whose tags changed, and the id of the deleted tag.
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

  test('completes for two merges in opposite directions', async () => {
    const { user, many, third } = await makeUser(4_500);
    const ends = await Promise.all([
      user.post('/tags/merge', { id: many, into_id: third }),
      user.post('/tags/merge', { id: third, into_id: many }),
    ]);
    for (const { status } of ends) expect([200, 404, 503]).toContain(status);
    expect(await findFaults(service.database.url)).toEqual([]);
  });
});

// Does not run on a sharded database, where each node has an index of its own.
test.runIf(inject('citusUrl') === undefined)(
  'the pending list of the index of tags, which every search by a tag reads, has at most 17 pages',
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
