import { describe, expect, test } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { findPrincipal } from '../src/store/tokens.ts';
import { runOn } from './support/database.ts';
import { type TestUser, useService } from './support/service.ts';

// Tests polls of one account that are woken together: each gets the response that it would get alone.

const service = useService();

async function principalOf(token: string) {
  return (await findPrincipal(service.context.database, parseToken(token)!))!;
}

/** Sends `ofEach` polls for each of the user's tokens. Resolves when the service holds all the polls. */
async function holdPolls(user: TestUser, tokens: readonly string[], ofEach: number) {
  const polls = tokens.flatMap((token) =>
    Array.from({ length: ofEach }, () => service.post('/bookmarks/sync', { wait: true }, { token })),
  );
  const { notifier } = service.context.coordination;
  await expect.poll(() => notifier.held).toBe(polls.length);
  return { polls, wake: () => user.post('/bookmarks/add', { url: 'https://example.org/' }) };
}

describe('polls of one account that are woken together', () => {
  test('get a complete response each', async () => {
    const user = await service.user();
    const { polls, wake } = await holdPolls(user, [user.token, await service.token(user.id, 'read')], 10);
    const { body: added } = await wake();
    for (const { status, body } of await Promise.all(polls)) {
      expect(status).toBe(200);
      expect(body).toEqual({ bookmarks: [added], cursor: added.id, has_more: false, waited: true });
    }
  });

  test('end with 401 only if their token is revoked', async () => {
    const user = await service.user();
    const revoked = await service.token(user.id, 'read');
    const { polls, wake } = await holdPolls(user, [user.token, revoked], 3);
    // The test deletes the token in the database, so that only a read can notice the deletion.
    const hash = (await principalOf(revoked)).hash.toString('hex');
    await runOn(service.database.url, `delete from tokens where token_hash = decode('${hash}', 'hex')`);
    await wake();
    const statuses = (await Promise.all(polls)).map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 401, 401, 401]);
  });

  test('are all woken, even if there are more than a hundred', async () => {
    const user = await service.user();
    const tokens = await Promise.all(Array.from({ length: 8 }, () => service.token(user.id, 'read')));
    const { polls, wake } = await holdPolls(user, tokens, 16);
    await wake();
    for (const { body } of await Promise.all(polls)) expect(body.bookmarks).toHaveLength(1);
    await expect.poll(() => service.context.coordination.notifier.held).toBe(0);
  });
});

test('polls of different sizes at the same time get at most as many bookmarks as each asked for', async () => {
  const user = await service.user();
  for (const n of [1, 2, 3]) await user.post('/bookmarks/add', { url: `https://example.org/${n}` });
  const pages = await Promise.all([1, 3, 2].map((limit) => user.post('/bookmarks/sync', { limit })));
  expect(pages.map(({ body }) => body.bookmarks.length)).toEqual([1, 3, 2]);
});
