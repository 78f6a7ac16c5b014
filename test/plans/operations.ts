import { prepareEntries } from '../../src/imports/batches.ts';
import * as admin from '../../src/store/admin.ts';
import {
  addBookmark,
  deleteBookmark,
  deleteBookmarks,
  editBookmark,
  editBookmarks,
  findBookmarks,
  readPage,
} from '../../src/store/bookmarks.ts';
import { readChanges } from '../../src/store/changes.ts';
import type { Database } from '../../src/store/driver/database.ts';
import { beginExport, readExportPage } from '../../src/store/export.ts';
import {
  beginSmallImport,
  claimImport,
  releaseLease,
  renewLease,
  stageBatch,
} from '../../src/store/import-leases.ts';
import { finishImport } from '../../src/store/imports.ts';
import { type SearchOptions, searchBookmarks } from '../../src/store/search.ts';
import {
  beginImport,
  cancelImport,
  deleteErrors,
  queueImport,
  readChunks,
  readErrors,
  readImport,
  stageChunk,
} from '../../src/store/staged-imports.ts';
import * as sweep from '../../src/store/sweep.ts';
import { createTag, deleteTag, listTags, mergeTags, renameTag } from '../../src/store/tags.ts';
import { findPrincipal, revokeToken } from '../../src/store/tokens.ts';
import { exchangeInvite, readAccount, readProfile } from '../../src/store/users.ts';
import { BIG, type Collection, SMALL } from './collections.ts';

/**
 * Operations of the store whose work could grow with the account. Each has the number of rows that it may read for the
 * big account.
 */

export interface Operation {
  name: string;
  /** Calls the operation. `n` is different for each call. */
  run(db: Database, collection: Collection, n: number): Promise<unknown>;
  /** The most rows that all nodes of all plans together may return or discard. */
  atMost: number;
  /** The limit that applies if Postgres has no fresh statistics. By default it is `atMost`. */
  atMostUnknown?: number;
}

const LIMIT = 1_000_000;
const LIMITS = { bookmarks: LIMIT, trash: LIMIT };
const HASH = Buffer.alloc(32, 9);
const hashOf = (n: number): Buffer => Buffer.alloc(32, `hash ${n}`);

let fresh = 0;
const freshUrl = (): string => {
  fresh += 1;
  return `https://fresh.example/${fresh}`;
};

const tagNames = (...names: string[]) => ({ names, keys: names.map((name) => name.toLowerCase()) });
const someTags = (count: number, from: number, of: number) =>
  tagNames(...Array.from({ length: count }, (_, n) => `Tag/${(from + n) % of}`));
const freshTag = () => ({ name: freshUrl(), key: freshUrl() });

const bookmark = (tags: ReturnType<typeof tagNames>) => ({
  url: freshUrl(),
  title: 'Title',
  comment: '',
  tags,
});

/** Prepares an import of entries. Nearly every entry has a different set of tags. */
async function prepareWork(
  { tags }: Collection,
  entries: number,
  urlOf: (n: number) => string,
  mode: 'merge' | 'replace' = 'merge',
) {
  const bookmarks = Array.from({ length: entries }, (_, n) => ({
    url: urlOf(n),
    tags: [n, n * 7 + 1, n * 11 + 2, n * 13 + 3].map((t) => `Tag/${t % tags}`),
  }));
  return prepareEntries({ replace: mode === 'replace', entries: bookmarks });
}

const isBig = ({ bookmarks }: Collection): boolean => bookmarks === BIG.bookmarks;
/**
 * Returns how many entries an account imports. Small accounts import fewer, so that a plan that Postgres made for them
 * does not suit the big account.
 */
const sizeFor = (c: Collection, n: number): number => (isBig(c) ? 2_000 : 20 + n);

async function importWork(
  db: Database,
  { owner }: Collection,
  work: Awaited<ReturnType<typeof prepareWork>>,
): Promise<void> {
  const lease = { userId: owner.userId, id: crypto.randomUUID(), leaseId: crypto.randomUUID() };
  await beginSmallImport(db, owner, lease, undefined);
  await finishImport(db, lease, work, LIMITS);
}

const search = (db: Database, { owner }: Collection, asked: Partial<SearchOptions>) =>
  searchBookmarks(db, owner, { terms: [], filter: {}, sort: 'newest', page: 1, perPage: 50, ...asked });

async function stage(db: Database, { owner }: Collection) {
  const staged = { userId: owner.userId, id: crypto.randomUUID(), leaseId: crypto.randomUUID() };
  await beginImport(db, owner, staged.id, 10, LIMIT);
  await stageChunk(db, staged, 0, Buffer.from('{}'));
  await queueImport(db, owner, staged.id, {});
  return staged;
}

const READS: Operation[] = [
  {
    name: 'the principal of a token',
    atMost: 20,
    run: (db, { owner }) => findPrincipal(db, { kind: 'api', key: '', ...owner }),
  },
  { name: 'profile', atMost: 20, run: (db, { owner }) => readProfile(db, owner) },
  { name: 'account', atMost: 20, run: (db, { owner }) => readAccount(db, owner, LIMIT) },
  {
    name: 'bookmarks with a url',
    atMost: 60,
    run: (db, { owner }, n) => findBookmarks(db, owner, { url: `https://example.org/${n}` }),
  },
  { name: 'bookmark of an id', atMost: 60, run: (db, c, n) => findBookmarks(db, c.owner, { id: c.ids[n]! }) },
  { name: 'list of 100', atMost: 600, run: (db, { owner }) => readPage(db, owner, 0, 100) },
  {
    name: 'list of 500 in the middle',
    atMost: 2_600,
    run: (db, c) => readPage(db, c.owner, c.ids[c.ids.length >> 1]!, 500),
  },
  {
    name: 'idle poll',
    atMost: 20,
    run: (db, { owner }) => readPage(db, owner, Number.MAX_SAFE_INTEGER - 1, 50),
  },
  {
    name: 'all changes',
    atMost: 1_000,
    run: (db, { owner }) => readChanges(db, owner, 'beginning', 100),
  },
  { name: 'changes from now', atMost: 60, run: (db, { owner }) => readChanges(db, owner, 'now', 100) },
  {
    name: 'changes of edited bookmarks',
    atMost: 2_000,
    run: async (db, c) => {
      const now = await readChanges(db, c.owner, 'now', 1);
      await readChanges(db, c.owner, { ...now, change: 1 }, 100);
    },
  },
  { name: 'tags', atMost: 4 * BIG.tags, run: (db, { owner }) => listTags(db, owner) },
  {
    name: 'export',
    atMost: 3_000,
    run: async (db, { owner }) => readExportPage(db, owner, 0, await beginExport(db, owner), 500),
  },
];

const SEARCHES: Operation[] = [
  { name: 'newest page', atMost: 400, run: (db, c) => search(db, c, {}) },
  ...[0.3, 0.7, 1].map((part) => ({
    // To skip bookmarks, the search counts them block by block, from the nearer end of the collection.
    name: `page of everything, ${part} of the way`,
    atMost: 1_000,
    run: (db: Database, c: Collection) => search(db, c, { page: Math.floor((part * c.bookmarks) / 50) }),
  })),
  {
    name: 'search for a common word',
    atMost: 4 * BIG.bookmarks,
    run: (db, c, n) => search(db, c, { terms: ['book', `${n % 3}`] }),
  },
  {
    // A block contains the texts of 64 bookmarks and is one row.
    name: 'search for a word that does not occur',
    atMost: BIG.bookmarks / 50,
    run: (db, c) => search(db, c, { terms: ['nowhere'] }),
  },
  {
    name: 'search for a word that 20 bookmarks have',
    atMost: BIG.bookmarks / 2,
    run: (db, c, n) => search(db, c, { terms: [`org/1${n % 10}77`] }),
  },
  {
    // All bookmarks match. The search reads each text once, and then sorts the ids.
    name: 'search for five words',
    atMost: 6 * BIG.bookmarks,
    run: (db, c) => search(db, c, { terms: ['book', 'mark', 'example', 'org', 'http'] }),
  },
  {
    name: 'search for a rare word, excluding a common one',
    atMost: BIG.bookmarks / 2,
    run: (db, c, n) =>
      search(db, c, { terms: [`org/1${n % 10}77`], filter: { without_phrases: ['http://nowhere'] } }),
  },
  {
    // The search reads and sorts each bookmark once.
    name: 'search for all bookmarks except those with a word',
    atMost: 4 * BIG.bookmarks,
    run: (db, c) => search(db, c, { filter: { without_phrases: ['nowhere'] } }),
  },
  {
    name: 'page after a position, excluding a word',
    atMost: 1_200,
    run: (db, c, n) =>
      search(db, c, {
        filter: { without_phrases: ['nowhere'] },
        after: { lastId: c.ids[c.ids.length >> 1]! + n, lastKey: null },
      }),
  },
  {
    name: 'search for either of ten words that do not occur',
    atMost: BIG.bookmarks / 5,
    run: (db, c) =>
      search(db, c, {
        filter: { any: Array.from({ length: 10 }, (_, n) => ({ phrases: [`nowhere ${n}`], tags: [] })) },
      }),
  },
  {
    name: 'search for either of two tags',
    atMost: 800,
    run: (db, c, n) =>
      search(db, c, { filter: { any: [n, n + 1].map((tag) => ({ phrases: [], tags: [`tag/${tag}`] })) } }),
  },
  {
    name: 'page after a position, for either of two common words',
    atMost: 1_200,
    run: (db, c, n) =>
      search(db, c, {
        filter: { any: ['book', 'mark'].map((word) => ({ phrases: [word], tags: [] })) },
        after: { lastId: c.ids[c.ids.length >> 1]! + n, lastKey: null },
      }),
  },
  {
    name: 'search for a word, sorted by title',
    atMost: 8 * BIG.bookmarks,
    run: (db, c) => search(db, c, { terms: ['book'], sort: 'title' }),
  },
  {
    // The search finds blocks, and then each bookmark by its key. If Postgres expects these look-ups to cost more than
    // reading all of the user's bookmarks, it reads all the bookmarks.
    name: 'search for a rare word, sorted by edit',
    atMost: 3 * BIG.bookmarks,
    run: (db, c, n) => search(db, c, { terms: [`org/1${n}7`, 'mark'], sort: 'updated' }),
  },
  {
    name: 'search for a tag',
    atMost: 400,
    run: (db, c, n) => search(db, c, { filter: { tag: `tag/${n}` } }),
  },
  {
    name: 'search for tags, excluding another',
    atMost: 600,
    run: (db, c, n) =>
      search(db, c, {
        filter: { tags: [`tag/${n}`, `tag/${n + 1}`], without_tags: [`tag/${n + 2}`] },
      }),
  },
  {
    name: 'search below a tag with few bookmarks',
    atMost: 1_200,
    run: (db, c, n) => search(db, c, { filter: { tag_under: [`tag/${n + 10}`] } }),
  },
  {
    // The search reads each bookmark once, with its three tags.
    name: 'search below a tag of all bookmarks',
    atMost: 12 * BIG.bookmarks,
    run: (db, c) => search(db, c, { filter: { tag_under: ['tag'] } }),
  },
  ...(['newest', 'oldest'] as const).map((sort) => ({
    name: `page of all bookmarks after a position, ${sort}`,
    atMost: 800,
    run: (db: Database, c: Collection, n: number) =>
      search(db, c, { sort, after: { lastId: c.ids[c.ids.length >> 1]! + n, lastKey: null } }),
  })),
  ...(['created', 'created_oldest'] as const).flatMap((sort) => [
    {
      name: `first page of all bookmarks, ${sort}`,
      atMost: 2_000,
      run: (db: Database, c: Collection) => search(db, c, { sort }),
    },
    {
      name: `page of all bookmarks after a position, ${sort}`,
      atMost: 2_000,
      run: (db: Database, c: Collection, n: number) =>
        search(db, c, {
          sort,
          after: { lastId: c.ids[c.ids.length >> 1]! + n, lastKey: '2026-01-01T00:00:00.000Z' },
        }),
    },
  ]),
  {
    name: 'page after a position, for a common word',
    atMost: 1_200,
    run: (db, c, n) =>
      search(db, c, {
        terms: ['book'],
        after: { lastId: c.ids[c.ids.length >> 1]! + n, lastKey: null },
      }),
  },
  {
    name: 'page by title after a position',
    atMost: 4 * BIG.bookmarks,
    run: (db, c, n) => search(db, c, { sort: 'title', after: { lastId: c.ids[n]!, lastKey: 'book' } }),
  },
  {
    name: 'search for a tag and a word',
    atMost: 400,
    run: (db, c, n) => search(db, c, { terms: ['book'], filter: { tag: `tag/${n}` } }),
  },
];

const WRITES: Operation[] = [
  {
    name: 'add with 3 tags',
    atMost: 100,
    run: (db, c, n) => addBookmark(db, c.owner, bookmark(someTags(3, n, c.tags)), LIMIT),
  },
  {
    name: 'add with 30 tags, one of them new, and a key',
    atMost: 600,
    run: (db, c) =>
      addBookmark(db, c.owner, bookmark(tagNames(freshUrl(), ...someTags(29, 0, c.tags).names)), LIMIT, {
        key: freshUrl(),
        requestHash: HASH,
      }),
  },
  {
    name: 'add only if new',
    atMost: 120,
    run: (db, c, n) => addBookmark(db, c.owner, bookmark(someTags(3, n, c.tags)), LIMIT, undefined, 'return'),
  },
  {
    name: 'edit of a title',
    // The edit rewrites the block that contains the bookmark's text.
    atMost: 300,
    run: (db, c, n) => editBookmark(db, c.owner, c.ids[n]!, { title: 'Other' }),
  },
  {
    name: 'edit of the tags of 500',
    atMost: 500 * 100,
    // Without statistics, Postgres may read all of the user's rows.
    atMostUnknown: 500 * 100 + 1.5 * BIG.bookmarks,
    run: (db, c, n) =>
      editBookmarks(
        db,
        c.owner,
        { ids: c.ids.slice(n, n + 500) },
        { added: someTags(3, n, c.tags), removed: someTags(3, n + 9, c.tags) },
      ),
  },
  {
    name: 'deletion of 500',
    // Postgres 15 reads all of the user's rows.
    atMost: 4 * BIG.bookmarks,
    run: (db, c, n) =>
      deleteBookmarks(
        db,
        c.owner,
        { ids: c.ids.slice(-600 - n * 500, -100 - n * 500) },
        { trashLimit: LIMIT },
      ),
  },
  {
    name: 'edit of 30 tags',
    atMost: 800,
    run: (db, c, n) => editBookmark(db, c.owner, c.ids[n]!, { tags: someTags(30, n, c.tags) }),
  },
  {
    name: 'delete',
    atMost: 100,
    run: (db, c) => deleteBookmark(db, c.owner, c.ids.at(-1)!, { trashLimit: LIMIT }),
  },
  {
    name: 'creation, rename and deletion of a tag',
    atMost: 200,
    run: async (db, { owner }) => {
      const { id } = JSON.parse(await createTag(db, owner, freshTag()));
      await renameTag(db, owner, { id }, freshTag());
      await deleteTag(db, owner, { id });
    },
  },
  {
    name: 'rename of a tag on some bookmarks',
    atMost: 2_000,
    run: (db, { owner }, n) => renameTag(db, owner, { id: n + 5 }, freshTag()),
  },
  {
    name: 'rename of a tag on some bookmarks, with its child',
    atMost: 2_500,
    async run(db, { owner }, n) {
      const child = `tag/${n + 14}/${freshUrl()}`;
      await createTag(db, owner, { name: child, key: child });
      await renameTag(db, owner, { id: n + 15, withChildren: true }, freshTag());
    },
  },
  {
    name: 'merge of tags on some bookmarks',
    atMost: 4_000,
    run: (db, { owner }) => mergeTags(db, owner, 29, 30),
  },
  {
    name: 'deletion of a tag on some bookmarks',
    // The earlier edits added the tag to about 530 bookmarks. The deletion counts them, and looks up their other tags.
    atMost: 530 * 60,
    // Without statistics, Postgres may read all of the user's rows.
    atMostUnknown: 530 * 60 + 2 * BIG.bookmarks,
    run: (db, { owner }, n) => deleteTag(db, owner, { id: n + 1 }),
  },
];

const IMPORTS: Operation[] = [
  {
    name: 'import of 3 entries',
    atMost: 500,
    run: async (db, c) => importWork(db, c, await prepareWork(c, 3, freshUrl)),
  },
  {
    name: 'import of 2,000 entries with almost as many sets of tags',
    atMost: 2_000 * 80 + 4 * BIG.bookmarks,
    run: async (db, c, n) => importWork(db, c, await prepareWork(c, sizeFor(c, n), freshUrl)),
  },
  {
    name: 'import of 2,000 existing entries and a new one',
    atMost: 2_000 * 80 + 5 * BIG.bookmarks,
    run: async (db, c, n) => {
      const known = (k: number) => (k === 0 ? freshUrl() : `https://example.org/${k}`);
      await importWork(db, c, await prepareWork(c, sizeFor(c, n), known));
    },
  },
  {
    name: 'a staged import from start to end',
    atMost: 700,
    run: async (db, c) => {
      const lease = await stage(db, c);
      await readImport(db, lease);
      await claimImport(db, lease);
      await renewLease(db, lease);
      await readChunks(db, lease, -1);
      await releaseLease(db, lease, true);
      await claimImport(db, lease);
      const work = await prepareWork(c, 3, freshUrl);
      await stageBatch(db, lease, 0, { ...work.batch, errors: Buffer.from('{}') });
      const { batch } = await prepareWork(c, 0, freshUrl);
      await finishImport(db, lease, { ...work, batches: 1, batch }, LIMITS);
      await readErrors(db, lease, 0);
      await deleteErrors(db, lease);
    },
  },
  {
    name: 'a staged import that is cancelled',
    atMost: 200,
    run: async (db, c) => cancelImport(db, await stage(db, c)),
  },
];

const OTHERS: Operation[] = [
  {
    name: 'an edited text, and the filter of its block',
    // The sweep also reads the blocks that earlier operations created and that have no filter yet.
    atMost: 1_000,
    run: async (db, c, n) => {
      await editBookmark(db, c.owner, c.ids[n]!, { title: 'Signed' });
      await sweep.findPendingFilters(db, 0, 1_000);
      await sweep.buildNextFilters(db, c.owner.userId);
    },
  },
  {
    name: 'sweeps that find nothing',
    atMost: 200,
    // The sweeps run once a minute. They read this many rows only until Postgres has its first statistics.
    atMostUnknown: 4 * SMALL.users,
    run: async (db) => {
      await sweep.deleteExpiredTokens(db);
      await sweep.deleteExpiredInvites(db);
      await sweep.deleteOldResponses(db);
      await sweep.deleteOldChanges(db, 90);
      await sweep.deleteOldImports(db);
      await sweep.findQueuedImports(db, 1_000);
      await sweep.countStagedImports(db);
    },
  },
  {
    name: 'an invite, a session and its revocation',
    atMost: 200,
    run: async (db, { owner }, n) => {
      const code = `${owner.userId}`.padStart(6, 'A') + `${n}`.padStart(2, 'B');
      await admin.createInvite(db, code, freshUrl(), freshUrl(), 7);
      const { id } = await exchangeInvite(db, { code }, { hash: hashOf(n), lastFour: 'abcd' }, 90);
      await revokeToken(db, { userId: id, hash: hashOf(n) });
    },
  },
  {
    name: 'the commands of the operator about a user',
    atMost: 200,
    run: async (db, { owner }) => {
      await admin.findUser(db, { id: owner.userId });
      await admin.findUser(db, { emailKey: `${owner.userId}` });
      await admin.setPremium(db, `${owner.userId}`, true);
      await admin.listUsers(db, owner.userId, 10);
      await admin.listTokens(db, owner.userId);
    },
  },
  {
    name: 'replace by 2,000 entries',
    // Writing an entry reads about 90 rows. The deleted bookmarks are read twice: in an index, which still
    // lists their dead versions, and in the table.
    atMost: 2_000 * 100 + 8 * BIG.bookmarks,
    run: async (db, c, n) => importWork(db, c, await prepareWork(c, sizeFor(c, n), freshUrl, 'replace')),
  },
  {
    name: 'deletion of a user',
    // The deletion reads the bookmarks and the trash, each by index and in the table.
    atMost: 6 * BIG.bookmarks,
    run: (db, { owner }) => admin.deleteUser(db, `${owner.userId}`),
  },
];

/** All operations. Their order ensures that each finds the rows that it needs. */
export const OPERATIONS: readonly Operation[] = [...READS, ...SEARCHES, ...WRITES, ...IMPORTS, ...OTHERS];
