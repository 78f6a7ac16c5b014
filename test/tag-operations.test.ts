import { describe, expect, test } from 'vitest';
import type { Idempotency } from '../src/domain/idempotency.ts';
import type { Database } from '../src/store/driver/database.ts';
import { deleteTag, mergeTags, renameTag } from '../src/store/tags.ts';
import type { PrincipalKey } from '../src/store/tokens.ts';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { type TestUser, useService } from './support/service.ts';

// Section 4.3 of docs/contract.md: renaming, deleting or merging a tag that many bookmarks have takes several steps.
// Other operations may run between any two steps.

const service = useService();

/** How much one step writes (`p_work`). It is so little that an operation on the whole collection takes five steps. */
const SMALL_STEP = 40;

interface Collection {
  user: TestUser;
  owner: PrincipalKey;
  ids: number[];
  /** The ids of the tags `a`, `b`, `c` and `A/x`, by name. */
  tags: Record<string, number>;
}

/** Creates 30 bookmarks. All have the tag `a`, every second has `b`, every third has `c`, and every fifth has `A/x`. */
async function makeCollection(): Promise<Collection> {
  const user = await service.user();
  await user.post('/import', { bookmarks: Array.from({ length: 30 }, (_, n) => entryOf(n)) });
  const [token] = await service.context.database.sql<{ hash: Buffer }[]>`
    select token_hash as hash from tokens where user_id = ${user.id}`;
  const { bookmarks } = (await user.post('/bookmarks/list')).body;
  const { tags } = (await user.post('/tags/list')).body;
  return {
    user,
    owner: { userId: user.id, hash: token!.hash } as PrincipalKey,
    ids: bookmarks.map(({ id }: { id: number }) => id),
    tags: Object.fromEntries(tags.map(({ id, name }: { id: number; name: string }) => [name, id])),
  };
}

const entryOf = (n: number) => ({
  url: `https://example.org/${n}`,
  tags: ['a', ...(n % 2 === 0 ? ['b'] : []), ...(n % 3 === 0 ? ['c'] : []), ...(n % 5 === 0 ? ['A/x'] : [])],
});

type Operation = (collection: Collection, database: Database) => Promise<unknown>;

const send =
  (path: string, bodyOf: (collection: Collection) => object): Operation =>
  (collection) =>
    collection.user.post(path, bodyOf(collection));

const Z = { name: 'Z', key: 'z' };
const KEYED = { key: 'once', requestHash: Buffer.alloc(32) };

/** Operations that take several steps. With the database of `hooked`, a test can do something between the steps. */
const STEPPED: Record<string, Operation> = {
  'rename a': ({ owner, tags }, db) => renameTag(db, owner, { id: tags.a! }, Z, undefined, SMALL_STEP),
  'rename a with its children': ({ owner, tags }, db) =>
    renameTag(db, owner, { id: tags.a!, withChildren: true }, Z, undefined, SMALL_STEP),
  'rename the path a': ({ owner }, db) => renameTag(db, owner, { pathKey: 'a' }, Z, KEYED, SMALL_STEP),
  'delete a': ({ owner, tags }, db) => deleteTag(db, owner, { id: tags.a! }, undefined, SMALL_STEP),
  'delete the path a': ({ owner }, db) => deleteTag(db, owner, { pathKey: 'a' }, KEYED, SMALL_STEP),
  'merge a into b': ({ owner, tags }, db) => mergeTags(db, owner, tags.a!, tags.b!, undefined, SMALL_STEP),
};

const ALL: Record<string, Operation> = {
  'create a tag': send('/tags/create', () => ({ name: 'new' })),
  'rename a to another name': send('/tags/update', ({ tags }) => ({ id: tags.a, name: 'Y' })),
  'rename a to another name with its children': send('/tags/update', ({ tags }) => ({
    id: tags.a,
    name: 'Y',
    with_children: true,
  })),
  'move a below itself': send('/tags/update', ({ tags }) => ({
    id: tags.a,
    name: 'a/x',
    with_children: true,
  })),
  'rename a/x': send('/tags/update', ({ tags }) => ({ id: tags['A/x'], name: 'X' })),
  'rename b': send('/tags/update', ({ tags }) => ({ id: tags.b, name: '0' })),
  'delete a': send('/tags/delete', ({ tags }) => ({ id: tags.a })),
  'delete b': send('/tags/delete', ({ tags }) => ({ id: tags.b })),
  'rename the path a': send('/tags/update', () => ({ path: 'A', name: 'c/d', with_children: true })),
  'delete the path a': send('/tags/delete', () => ({ path: 'A', with_children: true })),
  'merge a into c': send('/tags/merge', ({ tags }) => ({ id: tags.a, into_id: tags.c })),
  'merge b into a': send('/tags/merge', ({ tags }) => ({ id: tags.b, into_id: tags.a })),
  'add with a': send('/bookmarks/add', () => ({ url: 'https://new.example/', tags: ['A', 'b', 'n'] })),
  'delete bookmarks': send('/bookmarks/delete', ({ ids }) => ({ ids: [ids[0], ids[14], ids[29]] })),
  'edit a title': send('/bookmarks/edit', ({ ids }) => ({ id: ids[1], title: 'T' })),
  'add a to an early bookmark': send('/bookmarks/edit', ({ ids }) => ({ id: ids[0], tags: ['a', 'n'] })),
  'remove a from bookmarks': send('/bookmarks/edit', ({ ids }) => ({ ids, remove_tags: ['a'] })),
  'add a and b to bookmarks': send('/bookmarks/edit', ({ ids }) => ({ ids, add_tags: ['a', 'b'] })),
  import: send('/import', () => ({ bookmarks: [{ url: 'https://new.example/', tags: ['a', 'm'] }] })),
  replace: send('/import', () => ({ mode: 'replace', bookmarks: [entryOf(0), entryOf(1), entryOf(0)] })),
  'delete the account': ({ user }) => service.context.database.sql`select delete_user(${user.email})`,
};

/** Returns a database that calls `between` after each write, with the number of writes so far. */
const hooked = (between: (writes: number) => Promise<unknown>): Database => {
  const { database } = service.context;
  let writes = 0;
  const write: Database['write'] = async (...call) => {
    const rows = await database.write(...call);
    writes += 1;
    await between(writes);
    return rows;
  };
  const { sql, gauges } = database;
  const self: Database = {
    ...{ sql, gauges, write },
    read: (...call) => database.read(...call),
    readShort: (...call) => database.readShort(...call),
    at: () => self,
    close: () => Promise.resolve(),
  };
  return self;
};

async function expectIntact(): Promise<void> {
  expect(await findFaults(service.database.url)).toEqual([]);
}

test.each(Object.keys(STEPPED))(
  'any other operation between the steps of %s leaves every counter and list correct',
  async (first) => {
    for (const [name, second] of Object.entries(ALL)) {
      for (const point of [1, 2, 4]) {
        const collection = await makeCollection();
        let reached = 0;
        const database = hooked(async (writes) => {
          reached = writes;
          if (writes === point) await second(collection, database);
        });
        // The first operation fails if the second one deleted the tag or the account.
        await STEPPED[first]!(collection, database).catch((error) =>
          expect(error, name).toMatchObject({ code: expect.stringMatching(/NOT_FOUND|INVALID_TOKEN/) }),
        );
        expect(reached, name).toBeGreaterThanOrEqual(point);
      }
    }
    await expectIntact();
  },
);

test('any operation after any other leaves every counter and list correct', async () => {
  for (const first of Object.values(ALL)) {
    for (const second of Object.values(ALL)) {
      const collection = await makeCollection();
      await first(collection, service.context.database);
      await second(collection, service.context.database);
    }
  }
  await expectIntact();
});

describe.each(Object.keys(STEPPED))('a request to %s', (name) => {
  test('is completed by repeating it if it was interrupted', async () => {
    const collection = await makeCollection();
    const interrupted = hooked(async (writes) => {
      if (writes === 2) throw new Error('interrupted');
    });
    await expect(STEPPED[name]!(collection, interrupted)).rejects.toThrow('interrupted');
    await STEPPED[name]!(collection, service.context.database);
    await expectIntact();
  });

  test('shows every reader each bookmark with its tags before or after the request, at any step', async () => {
    const collection = await makeCollection();
    const after = {
      'rename a': { a: 'Z' },
      'rename a with its children': { a: 'Z', 'A/x': 'Z/x' },
      'rename the path a': { a: 'Z', 'A/x': 'Z/x' },
      'delete a': { a: undefined },
      'delete the path a': { a: undefined, 'A/x': undefined },
      'merge a into b': { a: 'b' },
    }[name] as Record<string, string | undefined>;
    const read = async () => (await collection.user.post('/export')).body.bookmarks;
    const before: { id: number; tags: { name: string }[] }[] = await read();
    const namesOf = (names: (string | undefined)[]) =>
      [...new Set(names)].filter((tag) => tag !== undefined).sort();
    const allowed = new Map(
      before.map(({ id, tags }) => {
        const names = tags.map((tag) => tag.name);
        const changed = names.map((tag) => (tag in after ? after[tag] : tag));
        return [id, [namesOf(names).join(), namesOf(changed).join()]];
      }),
    );
    const check = async () => {
      for (const { id, tags } of await read())
        expect(allowed.get(id)).toContain(namesOf(tags.map((tag: { name: string }) => tag.name)).join());
    };
    await STEPPED[name]!(collection, hooked(check));
  });

  test('leads a follower of changes to the same collection', async () => {
    const collection = await makeCollection();
    let { cursor } = (await collection.user.post('/bookmarks/changes', { from: 'now' })).body;
    const names = new Map(Object.entries(collection.tags).map(([tag, id]) => [id, tag]));
    const held = new Map<number, number[]>();
    const hold = (bookmarks: { id: number; tags: { id: number; name: string }[] }[]) => {
      for (const { id, tags } of bookmarks) {
        held.set(
          id,
          tags.map((tag) => tag.id),
        );
        for (const tag of tags) names.set(tag.id, tag.name);
      }
    };
    hold((await collection.user.post('/export')).body.bookmarks);
    const follow = async () => {
      const { body } = await collection.user.post('/bookmarks/changes', { cursor, limit: 500 });
      hold(body.bookmarks);
      for (const tag of body.tags) names.set(tag.id, tag.name);
      for (const gone of body.deleted_tags)
        for (const [id, tags] of held)
          held.set(
            id,
            tags.filter((tag) => tag !== gone),
          );
      cursor = body.cursor;
    };
    const database = hooked(async (writes) => {
      await follow();
      // The request might be interrupted at this point. So the follower must already know the current tags of all
      // bookmarks.
      for (const { id, tags } of (await collection.user.post('/export')).body.bookmarks)
        expect(held.get(id)!.toSorted()).toEqual(tags.map((tag: { id: number }) => tag.id).sort());
      // This edit makes the follower read a bookmark that the operation has not reached yet. Later steps must correct
      // what the follower knows, so they get no further edit.
      if (writes > 1) return;
      await collection.user.post('/bookmarks/edit', { id: collection.ids[29], title: 'read again' });
      await follow();
    });
    await STEPPED[name]!(collection, database);
    await follow();
    const shown = (await collection.user.post('/export')).body.bookmarks;
    for (const { id, tags } of shown) {
      const expected = tags.map((tag: { name: string }) => tag.name).sort();
      expect(
        held
          .get(id)!
          .map((tag) => names.get(tag)!)
          .sort(),
      ).toEqual(expected);
    }
  });
});

test('a rename by path that was interrupted is completed by the same request, and done once', async () => {
  const { user, owner } = await makeCollection();
  const rename = (database: Database, name: string, idempotency?: Idempotency) =>
    renameTag(database, owner, { pathKey: 'a' }, { name, key: name }, idempotency, SMALL_STEP);
  const interrupted = () =>
    hooked(async (writes) => {
      if (writes === 2) throw new Error('interrupted');
    });
  const shown = async () => {
    const { bookmarks } = (await user.post('/bookmarks/list')).body;
    const names = bookmarks.flatMap(({ tags }: { tags: { name: string }[] }) => tags.map(({ name }) => name));
    return [...new Set(names)].sort();
  };
  // The tag a remains a path, because the new name is below it.
  await expect(rename(interrupted(), 'a/z', KEYED)).rejects.toThrow('interrupted');
  expect(await shown()).toContain('a');
  for (const _ of [1, 2])
    expect(JSON.parse(await rename(service.context.database, 'a/z', KEYED))).toEqual({
      name: 'a/z',
      renamed: 2,
    });
  expect(await shown()).toEqual(['a/z', 'a/z/x', 'b', 'c']);
  await expectIntact();

  await expect(rename(interrupted(), 'y')).rejects.toThrow('interrupted');
  // Without a key, the service cannot know that this request is a repeat.
  await expect(rename(service.context.database, 'y')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await shown()).toEqual(['b', 'c', 'y/z', 'y/z/x']);
  await expectIntact();
});

test('bookmarks with a hundred tags each are written in steps of a hundred bookmarks', async () => {
  const user = await service.user();
  const tags = Array.from({ length: 100 }, (_, n) => `tag ${n}`);
  const bookmarks = Array.from({ length: 250 }, (_, n) => ({ url: `https://example.org/${n}`, tags }));
  await user.post('/import', { bookmarks });
  const rows = await runOn<{ size: number; more: boolean }>(
    service.database.url,
    `select cardinality(next.ids) as size, next.has_more as more
    from tags t, next_carrying(t.user_id, array[t.id], 0, 10000) next
    where t.user_id = ${user.id} and t.name = 'tag 0'`,
  );
  expect(rows).toEqual([{ size: 97, more: true }]);
});
