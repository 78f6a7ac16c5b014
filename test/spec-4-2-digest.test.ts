import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import type { Bookmark, BookmarkDigest, BookmarkTag } from '../src/domain/resources.ts';
import { type TestUser, useService } from './support/service.ts';
import { holdLock, untilBlocked } from './support/sessions.ts';

// Section 4.2 of docs/contract.md: /bookmarks/digest.

const service = useService();
let user: TestUser;

beforeEach(async () => {
  user = await service.user();
});

const MAX_ID = Number.MAX_SAFE_INTEGER;

const sha256 = (lines: string[]) => createHash('sha256').update(lines.join('\n')).digest('hex');

// The digests as the contract describes them.
const digestOf = (bookmarks: Bookmark[]) =>
  sha256(
    bookmarks.map(({ id, updated_at, tags }) => {
      const tagIds = tags.map((tag) => tag.id).sort((a, b) => a - b);
      return `${id} ${updated_at} ${tagIds.join(',')}`;
    }),
  );
const tagsDigestOf = (tags: BookmarkTag[]) =>
  sha256(tags.toSorted((a, b) => a.id - b.id).map(({ id, name }) => `${id} ${name}`));

const digest = async (range: object = {}, owner = user): Promise<BookmarkDigest> =>
  (await owner.post('/bookmarks/digest', range)).body;
const readAll = async (owner = user): Promise<Bookmark[]> => (await owner.post('/export')).body.bookmarks;
const importMany = (count: number, owner = user) =>
  owner.post('/import', {
    bookmarks: Array.from({ length: count }, (_, n) => ({
      url: `https://example.org/${n}`,
      // The names and the ids are in different orders, and the bookmarks have different numbers of tags.
      tags: ['yak', 'zebra', 'xerus', 'wolf'].slice(0, n % 5),
    })),
  });

/** Returns the parts that a client expects for these bookmarks in this range. */
function expectParts(all: Bookmark[], { parts }: BookmarkDigest): void {
  for (const { after_id, up_to_id, count, digest } of parts) {
    const inPart = all.filter(({ id }) => id > after_id && id <= up_to_id);
    expect([count, digest]).toEqual([inPart.length, digestOf(inPart)]);
  }
}

test('divides all bookmarks into 16 parts of about equal count, which cover all ids', async () => {
  await importMany(215);
  const response = await digest();
  expect(Object.keys(response)).toEqual(['parts', 'tags_digest', 'cursor']);
  const { parts, tags_digest } = response;
  expect(parts.map(({ count }) => count).sort()).toEqual([...Array(9).fill(13), ...Array(7).fill(14)]);
  expect(parts[0]!.after_id).toBe(0);
  expect(parts.at(-1)!.up_to_id).toBe(MAX_ID);
  for (const [n, { after_id }] of parts.slice(1).entries()) expect(after_id).toBe(parts[n]!.up_to_id);
  expectParts(await readAll(), response);
  expect(tags_digest).toBe(tagsDigestOf((await user.post('/tags/list')).body.tags));
});

test('takes only the bookmarks after after_id and up to up_to_id, and of the own account', async () => {
  const other = await service.user();
  for (const owner of [user, other, user]) await importMany(20, owner);
  await user.post('/import', { bookmarks: Array.from({ length: 20 }, (_, n) => ({ url: `http://b/${n}` })) });
  const all = await readAll();
  const [first, last] = [all[3]!.id, all[30]!.id];
  for (const parts of [1, 5, 27, 64]) {
    const response = await digest({ after_id: first, up_to_id: last, parts });
    expect(response.parts).toHaveLength(Math.min(parts, 27));
    expect([response.parts[0]!.after_id, response.parts.at(-1)!.up_to_id]).toEqual([first, last]);
    expectParts(all, response);
    expect(response.parts.reduce((sum, { count }) => sum + count, 0)).toBe(27);
  }
});

test('an empty range is one part with the digest of an empty text', async () => {
  const empty = { count: 0, digest: sha256([]) };
  expect(await digest()).toMatchObject({
    parts: [{ after_id: 0, up_to_id: MAX_ID, ...empty }],
    tags_digest: sha256([]),
  });
  await importMany(3);
  expect((await digest({ after_id: 7, up_to_id: 7 })).parts).toEqual([
    { after_id: 7, up_to_id: 7, ...empty },
  ]);
  expect((await digest({ up_to_id: 0 })).parts).toEqual([{ after_id: 0, up_to_id: 0, ...empty }]);
});

test('a range that ends before it begins is a VALIDATION_ERROR', async () => {
  expect((await user.post('/bookmarks/digest', { after_id: 8, up_to_id: 7 })).body).toEqual({
    error: 'up_to_id: is below after_id',
    code: 'VALIDATION_ERROR',
  });
});

test('every change of a bookmark, its tags or a tag changes a digest, and the cursor', async () => {
  await importMany(6);
  const [first, second, third] = await readAll();
  const { tags } = (await user.post('/tags/list')).body;
  const seen = new Set<string>();
  const note = async () => {
    const { parts, tags_digest, cursor } = await digest({ parts: 1 });
    expect(parts[0]!.digest).toBe(digestOf(await readAll()));
    for (const value of [`${parts[0]!.digest} ${tags_digest}`, cursor]) {
      expect(seen).not.toContain(value);
      seen.add(value);
    }
    const changes = (await user.post('/bookmarks/changes', { cursor })).body;
    expect(changes).toMatchObject({
      bookmarks: [],
      deleted: [],
      tags: [],
      deleted_tags: [],
      has_more: false,
    });
    expect(changes.cursor).toBe(cursor);
  };
  await note();
  for (const [path, body] of [
    ['/bookmarks/edit', { id: first!.id, title: 'new' }],
    ['/bookmarks/edit', { ids: [second!.id], add_tags: ['vole'] }],
    ['/bookmarks/delete', { id: third!.id }],
    ['/bookmarks/add', { url: 'http://a' }],
    ['/tags/create', { name: 'unused' }],
    ['/tags/update', { id: tags[0].id, name: 'renamed' }],
    ['/tags/merge', { id: tags[0].id, into_id: tags[1].id }],
    ['/tags/delete', { id: tags[1].id }],
    ['/import', { bookmarks: [{ url: 'http://b' }], mode: 'replace' }],
  ] as const) {
    expect((await user.post(path, body)).status).toBe(200);
    await note();
  }
});

test('times are those of responses, in the first year and in the last', async () => {
  for (const created_at of ['0001-01-01', '9999-12-31T23:59:59.999Z', '2026-01-31T12:00:00.120Z'])
    await user.post('/bookmarks/add', { url: 'http://a', created_at });
  const all = await readAll();
  expect(all[0]!.updated_at).toBe('0001-01-01T00:00:00.000Z');
  expect((await digest({ parts: 1 })).parts[0]!.digest).toBe(digestOf(all));
});

test('the contract has an example whose digest is correct', () => {
  const contract = readFileSync('docs/contract.md', 'utf8');
  const [, lines, hash] = /```text\n(42 [^`]*)\n```\n\nIts digest is `([0-9a-f]{64})`/.exec(contract)!;
  expect(sha256([lines!])).toBe(hash);
});

test('one digest of an account runs at a time, and takes no permit while it waits', async () => {
  await importMany(3);
  const { digestPermits, requestPermits } = service.context;
  const lock = await holdLock(service.database.url, 'lock table bookmarks in access exclusive mode');
  const first = user.post('/bookmarks/digest');
  await untilBlocked(service.database.url);
  const others = [user.post('/bookmarks/digest'), user.post('/bookmarks/digest')];
  await expect.poll(() => digestPermits.gauges(user.id)).toMatchObject({ inUse: 1, waiting: 2 });
  expect(requestPermits.gauges(user.id).inUse).toBe(1);
  expect((await user.post('/user/profile')).status).toBe(200);
  await lock.release();
  for (const { status, body } of await Promise.all([first, ...others])) {
    expect(status).toBe(200);
    expect(body.parts).toHaveLength(3);
  }
  expect(digestPermits.gauges(user.id)).toMatchObject({ inUse: 0, waiting: 0 });
});
