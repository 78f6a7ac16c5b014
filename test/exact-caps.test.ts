import { describe, expect, test } from 'vitest';
import { runOn } from './support/database.ts';
import { findFaults } from './support/invariants.ts';
import { startService, type TestUser, useService } from './support/service.ts';

// Decisions 9, 20, 22 and 28: limits, counters and invites are exact, whatever three replicas do at the same time.

const CAP = 10;

const config = { freeBookmarkLimit: CAP };
const first = useService(config);
/** The third replica stages every import. The other two write a small import before they respond. */
const replicas = [
  first,
  useService(config, { beside: first }),
  useService({ ...config, importInlineBytes: 0 }, { beside: first }),
];

/** Sends a request to the replica with this number. */
const post = (n: number, user: TestUser, path: string, body: unknown) =>
  replicas[n % replicas.length]!.post(path, body, { token: user.token });

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

const url = (name: unknown) => `https://example.org/${name}`;

const LIMIT = { status: 403, body: { code: 'LIMIT_EXCEEDED' } };

const exported = async (user: TestUser) => (await post(0, user, '/export', {})).body.bookmarks;

describe('the bookmark cap (decision 28)', () => {
  test('40 adds at once over three replicas leave exactly 10', async () => {
    const user = await replicas[0]!.user();
    const responses = await Promise.all(
      range(40).map((n) => post(n, user, '/bookmarks/add', { url: url(n) })),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(CAP);
    for (const response of responses) if (response.status !== 200) expect(response).toMatchObject(LIMIT);
    expect(await exported(user)).toHaveLength(CAP);
  });

  test('concurrent adds and imports leave exactly what their responses say', async () => {
    for (let round = 0; round < 8; round++) {
      const user = await replicas[0]!.user();
      const responses = await Promise.all(
        range(18).map((n) =>
          n % 3 === round % 3
            ? post(n, user, '/bookmarks/add', { url: url(n) })
            : post(n + round, user, '/import', {
                bookmarks: range(3).map((m) => ({ url: url(`${n}/${m}`) })),
              }),
        ),
      );
      const written = responses.map(({ status, body }) => (status === 200 ? (body.imported ?? 1) : 0));
      const told = written.reduce((sum, count) => sum + count, 0);
      expect(await exported(user)).toHaveLength(told);
      // At most two more bookmarks fit. If there were room for three, one more import would have succeeded.
      expect(told).toBeGreaterThan(CAP - 3);
      expect(told).toBeLessThanOrEqual(CAP);
      for (const { status, body } of responses)
        if (status !== 200) expect(['LIMIT_EXCEEDED', 'RATE_LIMITED']).toContain(body.code);
    }
  });

  test('a merge that adds nothing succeeds, even if the account is above its cap (decision 33)', async () => {
    const user = await replicas[0]!.user({ premium: true });
    const bookmarks = range(CAP + 5).map((n) => ({ url: url(n) }));
    await post(0, user, '/import', { bookmarks });
    await runOn(first.database.url, `update accounts set is_premium = false where user_id = ${user.id}`);
    for (const n of range(3)) {
      const again = await post(n, user, '/import', { bookmarks: [...bookmarks, { url: 'none' }] });
      expect(again).toMatchObject({ status: 200, body: { imported: 0, skipped: CAP + 5 } });
      expect(await post(n, user, '/import', { bookmarks: [] })).toMatchObject({ status: 200 });
      const more = { bookmarks: [...bookmarks, { url: url('more') }] };
      expect(await post(n, user, '/import', more)).toMatchObject(LIMIT);
    }
    expect(await exported(user)).toHaveLength(CAP + 5);
  });

  test('with concurrent deletes and adds there are never more than 10 bookmarks, and no room is lost', async () => {
    const user = await replicas[0]!.user();
    const bookmarks = range(CAP).map((n) => ({ url: url(n) }));
    await post(0, user, '/import', { bookmarks });
    const old: { id: number }[] = await exported(user);
    await Promise.all([
      ...old.map(({ id }, n) => post(n, user, '/bookmarks/delete', { id })),
      ...range(30).map((n) => post(n, user, '/bookmarks/add', { url: url(`new ${n}`) })),
    ]);
    const left = await exported(user);
    expect(left.length).toBeLessThanOrEqual(CAP);
    for (let n = left.length; n < CAP; n++)
      expect(await post(n, user, '/bookmarks/add', { url: url('fill') })).toMatchObject({ status: 200 });
    expect(await post(0, user, '/bookmarks/add', { url: url('more') })).toMatchObject(LIMIT);
  });

  test('an import up to the cap is accepted, and one bookmark more changes nothing, in merge and in replace', async () => {
    const user = await replicas[0]!.user();
    const bookmarks = (count: number) => range(count).map((n) => ({ url: url(n), tags: [`tag ${n}`] }));
    for (const n of [0, 2]) {
      for (const mode of ['merge', 'replace']) {
        expect(await post(n, user, '/import', { bookmarks: bookmarks(11), mode })).toMatchObject(LIMIT);
        expect(await exported(user)).toHaveLength(0);
        expect((await post(n, user, '/tags/list', {})).body.tags).toEqual([]);
      }
    }
    // Each import in replace mode may use the whole limit.
    for (const n of [0, 2]) {
      const response = await post(n, user, '/import', { bookmarks: bookmarks(10), mode: 'replace' });
      expect(response.body).toEqual({ imported: 10, skipped: 0, errors: [] });
    }
    // The account is at its limit. An import succeeds if all of its bookmarks exist already, and fails if it would add
    // a bookmark.
    const again = await post(1, user, '/import', { bookmarks: bookmarks(10) });
    expect(again.body).toEqual({ imported: 0, skipped: 10, errors: [] });
    expect(await post(1, user, '/import', { bookmarks: bookmarks(11) })).toMatchObject(LIMIT);
  });
});

describe('the tag cap of 10,000 (decision 9)', () => {
  const TAGS = 10_000;

  /** Creates a user with this many tags. */
  async function withTags(count: number): Promise<TestUser> {
    const user = await replicas[0]!.user({ premium: true });
    await runOn(
      first.database.url,
      `select next_id('tags_id_seq');
      insert into tags (user_id, id, name, name_key)
      select ${user.id}, nextval('tags_id_seq'), 'tag ' || n, 'tag ' || n from generate_series(1, ${count}) n;
      update accounts set tag_count = ${count} where user_id = ${user.id}`,
    );
    return user;
  }

  const tagCount = async (user: TestUser) => (await post(0, user, '/tags/list', {})).body.tags.length;

  test('every way to create a tag counts towards the cap and never exceeds it', async () => {
    const user = await withTags(TAGS - 4);
    const added = await post(0, user, '/bookmarks/add', { url: url('a'), tags: ['new 1', 'tag 1', 'NEW 1'] });
    expect(added.body.tags).toHaveLength(2);
    const { id } = added.body;
    expect((await post(1, user, '/bookmarks/edit', { id, tags: ['new 2'] })).status).toBe(200);
    expect((await post(1, user, '/tags/create', { name: 'new 3' })).status).toBe(200);
    const entry = { url: url('b'), tags: ['new 4', 'tag 2'] };
    expect((await post(0, user, '/import', { bookmarks: [entry] })).body.imported).toBe(1);
    expect(await tagCount(user)).toBe(TAGS);

    const before = await exported(user);
    const over = { url: url('c'), tags: ['tag 1', 'new 5'] };
    expect(await post(0, user, '/bookmarks/add', over)).toMatchObject(LIMIT);
    expect(await post(0, user, '/bookmarks/edit', { id, title: 'x', tags: ['new 5'] })).toMatchObject(LIMIT);
    expect(await post(0, user, '/tags/create', { name: 'new 5' })).toMatchObject(LIMIT);
    for (const mode of ['merge', 'replace']) {
      expect(await post(0, user, '/import', { bookmarks: [over], mode })).toMatchObject(LIMIT);
      expect(await post(2, user, '/import', { bookmarks: [over], mode })).toMatchObject(LIMIT);
    }
    expect(await exported(user)).toEqual(before);
    expect(await tagCount(user)).toBe(TAGS);

    // At the cap, requests may still use existing tags, and may create tags after others were deleted.
    expect((await post(0, user, '/bookmarks/add', { url: url('d'), tags: ['Tag 1'] })).status).toBe(200);
    expect((await post(0, user, '/tags/delete', { id: added.body.tags[0].id })).status).toBe(200);
    expect((await post(0, user, '/tags/create', { name: 'new 5' })).status).toBe(200);
    expect(await post(0, user, '/tags/create', { name: 'new 6' })).toMatchObject(LIMIT);
  });

  test('if the last of three tags exceeds the cap, the other two are not created either', async () => {
    const user = await withTags(TAGS - 1);
    const state = () => runOn(first.database.url, `select * from accounts where user_id = ${user.id}`);
    const before = await state();
    for (const n of range(3)) {
      const over = { url: url(n), tags: ['new 1', 'new 2', 'tag 1'] };
      expect(await post(n, user, '/bookmarks/add', over)).toMatchObject(LIMIT);
    }
    expect(await state()).toEqual(before);
    const { tags } = (await post(0, user, '/tags/list', {})).body;
    expect(tags).toHaveLength(TAGS - 1);
    expect(tags.filter((tag: { bookmark_count: number }) => tag.bookmark_count !== 0)).toEqual([]);
    const fits = await post(1, user, '/bookmarks/add', { url: url('fits'), tags: ['new 1', 'tag 1'] });
    expect(fits.status).toBe(200);
    expect(await tagCount(user)).toBe(TAGS);
  });

  test('20 requests that create tags at once fill the cap exactly', async () => {
    const user = await withTags(TAGS - 5);
    const responses = await Promise.all(
      range(20).map((n) =>
        n % 2 === 0
          ? post(n, user, '/tags/create', { name: `race ${n}` })
          : post(n, user, '/bookmarks/add', { url: url(n), tags: [`race ${n}`] }),
      ),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(await tagCount(user)).toBe(TAGS);
  });
});

test('an invite works once in a race of 20 requests (decision 22)', async () => {
  for (let round = 0; round < 5; round++) {
    const code = await replicas[0]!.invite(`race-${round}@example.org`);
    const responses = await Promise.all(
      range(20).map((n) => replicas[n % 3]!.post('/auth/invite', { code })),
    );
    const [winner, ...others] = responses.filter(({ status }) => status === 200);
    expect(others).toEqual([]);
    expect(winner!.body.user.email).toBe(`race-${round}@example.org`);
    for (const response of responses)
      if (response !== winner) expect(response).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  }
});

test('several invites of one address, exchanged at once, create one user with a token for each (decision 22)', async () => {
  const emails = ['Several@example.org', 'several@example.org', 'SEVERAL@example.org'];
  const codes = await Promise.all(emails.map((email) => first.invite(email)));
  const responses = await Promise.all(codes.map((code, n) => replicas[n]!.post('/auth/invite', { code })));
  expect(new Set(responses.map(({ body }) => body.user.id)).size).toBe(1);
  expect(new Set(responses.map(({ body }) => body.token)).size).toBe(3);
});

describe('a tag that many requests create at once', () => {
  test('is created once, and all bookmarks have the same tag', async () => {
    const user = await replicas[0]!.user({ premium: true });
    const responses = await Promise.all(
      range(24).map((n) =>
        n % 6 === 5
          ? post(n, user, '/import', { bookmarks: [{ url: url(n), tags: ['Shared', `own ${n}`] }] })
          : post(n, user, '/bookmarks/add', { url: url(n), tags: ['sHARED', `own ${n}`] }),
      ),
    );
    for (const { status, body } of responses) if (status !== 200) expect(body.code).toBe('RATE_LIMITED');
    const written = responses.filter(({ status }) => status === 200).length;
    const { tags } = (await post(0, user, '/tags/list', {})).body;
    expect(tags).toHaveLength(written + 1);
    expect(Math.max(...tags.map((tag: { bookmark_count: number }) => tag.bookmark_count))).toBe(written);
  });

  test('is created once even if replicas name new tags in opposite orders', async () => {
    const user = await replicas[0]!.user({ premium: true });
    for (const round of range(6)) {
      const names = range(8).map((n) => `round ${round}, ${n}`);
      const responses = await Promise.all(
        range(6).map((n) => {
          const tags = n % 2 === 0 ? names : names.toReversed();
          return post(n, user, '/bookmarks/add', { url: url(`${round}/${n}`), tags });
        }),
      );
      const [one] = responses;
      expect(one!.body.tags.map(({ name }: { name: string }) => name)).toEqual(names);
      for (const { status, body } of responses)
        expect({ status, tags: body.tags }).toEqual({ status: 200, tags: one!.body.tags });
    }
    const { tags } = (await post(0, user, '/tags/list', {})).body;
    expect(tags.map((tag: { bookmark_count: number }) => tag.bookmark_count)).toEqual(Array(48).fill(6));
  });

  test('is created by one of the requests, and the others get an error', async () => {
    const user = await replicas[0]!.user();
    const names = ['Same', 'same', 'SAME', 'sAme'];
    const responses = await Promise.all(
      range(12).map((n) => post(n, user, '/tags/create', { name: names[n % 4] })),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { status, body } of responses) if (status !== 200) expect(body.code).toBe('VALIDATION_ERROR');
  });
});

/** Draws a random request. */
function drawRequest(n: number, ids: number[], tagIds: number[]): [path: string, body: object] {
  const pick = <T>(list: T[]): T => list[Math.floor(Math.random() * list.length)]!;
  const names = range(Math.floor(Math.random() * 4)).map(() => `tag ${Math.floor(Math.random() * 12)}`);
  const entries = range(4).map((m) => ({
    url: url(Math.floor(Math.random() * 60)),
    tags: names.slice(m % 2),
  }));
  return pick<[string, object]>([
    ['/bookmarks/add', { url: url(n), title: `Title ${n}`, tags: names }],
    ['/bookmarks/add', { url: url(n), tags: names }],
    ['/bookmarks/edit', { id: pick(ids), tags: names }],
    ['/bookmarks/edit', { id: pick(ids), title: `edit ${n}` }],
    ['/bookmarks/edit', { id: pick(ids), comment: `edit ${n}`, tags: names }],
    ['/bookmarks/delete', { id: pick(ids) }],
    ['/tags/delete', { id: pick(tagIds) }],
    ['/tags/update', { id: pick(tagIds), name: `tag ${Math.floor(Math.random() * 12)}` }],
    ['/tags/update', { id: pick(tagIds), name: `other ${n}` }],
    ['/import', { bookmarks: entries }],
    ...(n % 40 === 0 ? [['/import', { bookmarks: entries, mode: 'replace' }] as [string, object]] : []),
  ]);
}

test('after many random requests at once, every counter equals its recount', async () => {
  const users = await Promise.all(range(2).map(() => replicas[0]!.user({ premium: true })));
  const storm = users.flatMap((user) =>
    range(16).map(async (client) => {
      const ids: number[] = [1];
      const tagIds: number[] = [1];
      for (let n = client; n < 400; n += 16) {
        const [path, body] = drawRequest(n, ids, tagIds);
        const response = await post(n + client, user, path, body);
        expect([200, 400, 404, 429]).toContain(response.status);
        if (path === '/bookmarks/add') {
          ids.push(response.body.id);
          tagIds.push(...response.body.tags.map(({ id }: { id: number }) => id));
        }
      }
    }),
  );
  await Promise.all(storm);
  expect(await findFaults(first.database.url)).toEqual([]);
});

test.each([
  ['accounts', 'bookmark_count'],
  ['accounts', 'tag_count'],
  ['accounts', 'kept_bytes'],
  ['tags', 'bookmark_count'],
])('Postgres refuses a negative value of %s.%s', async (table, column) => {
  const user = await first.user();
  await post(0, user, '/tags/create', { name: 'counted' });
  const lower = runOn(
    first.database.url,
    `update ${table} set ${column} = ${column} - 2 where user_id = ${user.id}`,
  );
  await expect(lower).rejects.toMatchObject({ code: '23514' });
});

test('the recount notices each kind of fault', async () => {
  await using replica = await startService();
  const { url: brokenUrl } = replica.database;
  const faults = [
    'update accounts set bookmark_count = bookmark_count + 1',
    'update accounts set tag_count = tag_count + 1',
    'update tags set bookmark_count = 0',
    'update tags set name = upper(name)',
    'delete from tags',
    'update bookmarks set tag_ids = tag_ids || tag_ids',
    "update bookmarks set tags = '[]'",
    "update bookmarks set title = 'y'",
    "update bookmarks set url_key = '00000000-0000-0000-0000-000000000000'",
    'delete from accounts',
  ];
  expect(await findFaults(brokenUrl)).toEqual([]);
  let known = 0;
  for (const fault of faults) {
    const user = await replica.user();
    await user.post('/bookmarks/add', { url: url('x'), title: 'x', tags: ['a', 'b'] });
    await runOn(brokenUrl, `${fault} where user_id = ${user.id}`);
    const found = (await findFaults(brokenUrl)).length;
    expect(found, fault).toBeGreaterThan(known);
    known = found;
  }
});
