import type { Idempotency } from '../../src/domain/idempotency.ts';
import { parseToken } from '../../src/domain/tokens.ts';
import { prepareEntries } from '../../src/imports/batches.ts';
import * as admin from '../../src/store/admin.ts';
import { writeBatch } from '../../src/store/batch.ts';
import * as bookmarks from '../../src/store/bookmarks.ts';
import * as changes from '../../src/store/changes.ts';
import { readDigest } from '../../src/store/digest.ts';
import type { Database } from '../../src/store/driver/database.ts';
import * as exports from '../../src/store/export.ts';
import * as identities from '../../src/store/identities.ts';
import * as leases from '../../src/store/import-leases.ts';
import * as imports from '../../src/store/imports.ts';
import * as ownTokens from '../../src/store/own-tokens.ts';
import { searchBookmarks } from '../../src/store/search.ts';
import * as staged from '../../src/store/staged-imports.ts';
import * as sweep from '../../src/store/sweep.ts';
import * as tags from '../../src/store/tags.ts';
import { findPrincipal, noteUses, revokeToken } from '../../src/store/tokens.ts';
import * as users from '../../src/store/users.ts';
import { createSession } from '../support/create-session.ts';
import { runOn } from '../support/run-on.ts';
import { type RecordedCall, type Run, recordCalls } from './release.ts';

/**
 * Records every statement that the service sends, in an order that works on an empty database. Each recording contains
 * the same ids.
 */

const LIMIT = 10_000;
const LIMITS = { bookmarks: LIMIT, trash: LIMIT };
const ROLE = { kind: 'api', scope: 'write', name: 'recorded', nameKey: 'recorded', days: null } as const;

const hashOf = (byte: number): Buffer => Buffer.alloc(32, byte);
const secretOf = (byte: number) => ({ hash: hashOf(byte), lastFour: 'abcd' });
const importId = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const tagNames = (...names: string[]) => ({ names, keys: names.map((name) => name.toLowerCase()) });

/** Records all statements on an empty database with the current schema. */
export async function recordService(url: string): Promise<RecordedCall[]> {
  // Gives each kind of id a range of its own, so that an id shows its kind.
  await runOn(
    url,
    `select setval('bookmarks_id_seq', 4e15::bigint), setval('tags_id_seq', 5e15::bigint),
       setval('users_id_seq', 3e15::bigint), setval('tokens_id_seq', 6e15::bigint)`,
  );
  return recordCalls(url, sendAll);
}

async function sendAll(send: (run: Run) => Promise<readonly unknown[]>): Promise<void> {
  const pool = { read: send, readShort: send, write: send, at: () => pool };
  const db = pool as unknown as Database;
  const user = await admin.createUser(db, 'Somebody@example.org', 'somebody@example.org', true);
  const userId = user!.id;
  const owner = { userId, hash: hashOf(1) };
  await admin.createApiToken(db, userId, secretOf(1), ROLE);
  await sendAccounts(db, owner);
  await sendTokens(db, owner);
  await sendSignIns(db, owner);
  await sendBookmarks(db, owner);
  await sendImports(db, owner);
  await sendSweep(db);
  await sendDeletion(db, owner);
}

type PrincipalKey = { userId: number; hash: Buffer };

async function sendAccounts(db: Database, owner: PrincipalKey): Promise<void> {
  await admin.createInvite(db, 'ABCDEFGH', 'other@example.org', 'other@example.org', 7);
  await users.exchangeInvite(db, { code: 'ABCDEFGH' }, secretOf(2), 90);
  await admin.setPremium(db, 'other@example.org', true);
  await admin.findUserId(db, 'other@example.org');
  await findPrincipal(db, { kind: 'api', key: '', ...owner });
  await users.readProfile(db, owner);
  await users.readAccount(db, owner, LIMIT);
  const { id } = await admin.createApiToken(db, owner.userId, secretOf(3), ROLE);
  await admin.listTokens(db, owner.userId);
  await admin.revokeTokenById(db, owner.userId, Number(id.split('-')[1]));
}

async function sendSignIns(db: Database, { userId }: PrincipalKey): Promise<void> {
  const session = { authenticatedAt: new Date('2026-01-02T03:04:05Z'), days: 90 };
  const claim = { emailKey: 'third@example.org', isTrusted: true, isOpen: true };
  const identity = { issuer: 'https://accounts.example.org', subject: 'third', email: 'third@example.org' };
  await identities.signInByProvider(db, identity, claim, session);
  const own = await createSession(db, { userId, appName: null, authenticatedAt: null, days: 90 });
  await identities.openAppSession(db, parseToken(own)!, 'An app', 90);
  await identities.linkIdentity(db, parseToken(own)!, { ...identity, subject: 'first' }, session);
}

async function sendTokens(db: Database, { userId }: PrincipalKey): Promise<void> {
  const token = await createSession(db, { userId, appName: 'An app', authenticatedAt: null, days: 90 });
  const owner = parseToken(token)!;
  const given = { name: 'Mine', nameKey: 'mine', scope: 'read', days: 90 } as const;
  const { id } = await ownTokens.createOwnToken(db, owner, secretOf(5), given);
  await ownTokens.createOwnToken(db, owner, secretOf(6), { ...given, nameKey: 'endless', days: null });
  await ownTokens.listOwnTokens(db, owner);
  await ownTokens.listSessions(db, owner);
  await noteUses(db, [owner], 90);
  await ownTokens.revokeOwnToken(db, owner, { kind: 'api', id });
  await ownTokens.revokeOtherSessions(db, owner);
  const leaving = await admin.createUser(db, 'leaving@example.org', 'leaving@example.org', false);
  const session = { userId: leaving!.id, appName: null, authenticatedAt: null, days: 90 };
  await users.deleteAccount(db, parseToken(await createSession(db, session))!, 'leaving@example.org');
}

async function sendBookmarks(db: Database, owner: PrincipalKey): Promise<void> {
  const idempotency = { key: 'once', requestHash: hashOf(9) };
  const fields = {
    url: 'https://example.org/a',
    title: 'A',
    comment: 'about a',
    tags: tagNames('One', 'Two'),
  };
  const first = JSON.parse((await bookmarks.addBookmark(db, owner, fields, LIMIT, idempotency)).bookmark);
  const plain = { ...fields, url: 'https://example.org/b', tags: tagNames() };
  const second = JSON.parse((await bookmarks.addBookmark(db, owner, plain, LIMIT)).bookmark);
  await bookmarks.editBookmark(db, owner, first.id, { title: 'B', comment: '' });
  await bookmarks.editBookmark(db, owner, first.id, { tags: tagNames('Two', 'Three') });
  await bookmarks.addBookmark(db, owner, plain, LIMIT, { ...idempotency, key: 'unless saved' }, 'return');
  const dated = { ...plain, url: 'https://example.org/c', created_at: '2020-01-02T03:04:05.678Z' };
  await bookmarks.addBookmark(db, owner, dated, LIMIT, undefined, 'error');
  await bookmarks.editBookmark(db, owner, first.id, { url: 'https://example.org/d' });
  const several = { ids: [first.id, second.id] };
  await bookmarks.editBookmarks(db, owner, several, { added: tagNames('Several'), removed: tagNames('Two') });
  await bookmarks.editBookmark(db, owner, first.id, {});
  const tag = JSON.parse(
    await tags.createTag(db, owner, { name: 'Four', key: 'four' }, { ...idempotency, key: 'tag' }),
  );
  await tags.renameTag(db, owner, { id: first.tags[1].id }, { name: 'Second', key: 'second' });
  await bookmarks.findBookmarks(db, owner, { id: first.id });
  await bookmarks.findBookmarks(db, owner, { url: fields.url });
  await bookmarks.readPage(db, owner, 0, 1);
  const { valid: _, ...position } = { valid: [], ...(await changes.readChanges(db, owner, 'now', 1)) };
  await changes.readChanges(db, owner, 'beginning', 100);
  await readDigest(db, owner, { afterId: 0, upToId: 2 ** 53 - 1 }, 16);
  await tags.listTags(db, owner);
  for (const terms of [[], ['example'], ['example', 'a'], ['a', 'b', 'c'], ['a', 'b', 'c', 'd']]) {
    await searchBookmarks(db, owner, { terms, filter: {}, sort: 'newest', page: 1, perPage: 50 });
    await searchBookmarks(db, owner, {
      terms,
      filter: { tag: 'second' },
      sort: 'newest',
      page: 2,
      perPage: 1,
    });
  }
  for (const sort of ['newest', 'oldest', 'updated', 'title'] as const) {
    const filter = { tags: ['second'], without_tags: ['four'], site: 'example.org' };
    const found = await searchBookmarks(db, owner, { terms: ['a'], filter, sort, page: 1, perPage: 1 });
    const after = { lastId: found.lastId ?? 1, lastKey: found.lastKey };
    await searchBookmarks(db, owner, { terms: [], filter: {}, sort, after, page: 1, perPage: 1 });
  }
  const gone = JSON.parse(await tags.createTag(db, owner, { name: 'Five', key: 'five' }));
  await tags.mergeTags(db, owner, gone.id, tag.id);
  const bounds = await exports.beginExport(db, owner);
  await exports.readExportPage(db, owner, 0, bounds, 100);
  await tags.deleteTag(db, owner, { id: first.tags[1].id });
  await tags.deleteTag(db, owner, { id: tag.id });
  await bookmarks.deleteBookmark(db, owner, second.id);
  await bookmarks.deleteBookmarks(db, owner, several, { trashLimit: LIMIT });
  await changes.readChanges(db, owner, position, 100);
  const options = { isAtomic: false, freeBookmarkLimit: LIMIT, trashLimit: LIMIT };
  const added = { ...fields, tags: tagNames('Batch') };
  await writeBatch(
    db,
    owner,
    [
      { do: 'add', on_duplicate: 'add', ...added },
      { do: 'add', on_duplicate: 'return', ...added, idempotency: { key: 'batch', requestHash: hashOf(9) } },
      { do: 'edit', id: first.id, title: 'Batch' },
      { do: 'delete', id: first.id, trash: true },
    ],
    options,
  );
}

const entryOf = (n: number) => ({
  url: `https://example.org/${n}`,
  tags: ['Imported', `Number ${n % 7}`],
  ...(n === 0 && { title: 'Imported', created_at: '2020-01-02T03:04:05.678Z' }),
});

function prepare(count: number, mode: 'merge' | 'replace'): Promise<imports.PreparedImport> {
  const entries = Array.from({ length: count }, (_, n) => entryOf(n));
  return prepareEntries({ replace: mode === 'replace', entries });
}

async function sendImports(db: Database, owner: PrincipalKey): Promise<void> {
  const { userId } = owner;
  const idempotency = { key: 'import', requestHash: hashOf(8) };
  const importSmall = async (n: number, prepared: imports.PreparedImport, key?: Idempotency) => {
    const lease = { userId, id: importId(n), leaseId: importId(100 + n) };
    await leases.beginSmallImport(db, owner, lease, key);
    await imports.finishImport(db, lease, prepared, LIMITS);
  };
  await importSmall(1, await prepare(3, 'merge'), idempotency);
  await importSmall(2, await prepare(2, 'replace'));
  const stage = async (n: number) => {
    await staged.beginImport(db, owner, importId(n), 100, LIMIT);
    await staged.stageChunk(db, { userId, id: importId(n) }, 0, Buffer.from('null'));
    await staged.queueImport(db, owner, importId(n), {
      idempotency: { ...idempotency, key: `staged ${n}` },
    });
    return { userId, id: importId(n), leaseId: importId(100 + n) };
  };
  const done = await stage(3);
  await staged.readImport(db, done);
  await leases.claimImport(db, done);
  await leases.renewLease(db, done);
  await staged.readChunks(db, done, -1);
  const error = '{"index":0,"url":null,"code":"VALIDATION_ERROR","error":"expected an object"}';
  const work = await prepare(200, 'merge');
  await leases.stageBatch(db, done, 0, { ...work.batch, errors: Buffer.from(error) });
  const last = { ...(await prepare(0, 'merge')), batches: 1, tags: work.tags };
  await imports.finishImport(db, done, last, LIMITS);
  await staged.readErrors(db, done, 0);
  await staged.deleteErrors(db, done);
  const refused = await stage(4);
  await leases.claimImport(db, refused);
  await leases.releaseLease(db, refused, true);
  await leases.claimImport(db, refused);
  await leases.refuseImport(db, refused, '{"error":"refused","code":"VALIDATION_ERROR"}');
  await staged.cancelImport(db, await stage(5));
  await staged.cancelImport(db, { userId, id: importId(6) });
}

async function sendSweep(db: Database): Promise<void> {
  await sweep.deleteExpiredTokens(db);
  await sweep.deleteExpiredInvites(db);
  await sweep.deleteOldResponses(db);
  await sweep.deleteOldChanges(db, 90);
  await sweep.deleteOldImports(db);
  await sweep.findQueuedImports(db, 1);
  await sweep.countStagedImports(db);
  await sweep.findPendingFilters(db, 0, 1_000);
  await sweep.buildNextFilters(db, 1);
}

async function sendDeletion(db: Database, owner: PrincipalKey): Promise<void> {
  await revokeToken(db, owner);
  await admin.deleteUser(db, 'other@example.org');
}
