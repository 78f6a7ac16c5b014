import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseToken } from '../src/domain/tokens.ts';
import { PageReader, SYNC_PAGES } from '../src/operations/page-reads.ts';
import { findPrincipal } from '../src/store/tokens.ts';
import { runOn } from './support/database.ts';
import { type TestUser, useService } from './support/service.ts';

// Tests that polls of one account share their reads: one statement serves many polls, and each poll gets the response
// that it would get alone.

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
  test('share one statement, and each gets a complete response', async () => {
    const user = await service.user();
    const { polls, wake } = await holdPolls(user, [user.token, await service.token(user.id, 'read')], 10);
    const read = vi.spyOn(service.context.database, 'read');
    onTestFinished(() => read.mockRestore());
    const { body: added } = await wake();
    for (const { status, body } of await Promise.all(polls)) {
      expect(status).toBe(200);
      expect(body).toEqual({ bookmarks: [added], cursor: added.id, has_more: false, waited: true });
    }
    expect(read).toHaveBeenCalledOnce();
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

  test('are all woken, even if there are hundreds', async () => {
    const user = await service.user();
    const tokens = await Promise.all(Array.from({ length: 40 }, () => service.token(user.id, 'read')));
    const { polls, wake } = await holdPolls(user, tokens, 16);
    await wake();
    for (const { body } of await Promise.all(polls)) expect(body.bookmarks).toHaveLength(1);
    await expect.poll(() => service.context.coordination.notifier.held).toBe(0);
  });
});

describe('a shared read', () => {
  /** Opens a `PageReader` whose first statement returns only after `respondFirst` is called. */
  async function openSlowReader() {
    const user = await service.user();
    const principal = await principalOf(user.token);
    const { database } = service.context;
    const response = Promise.withResolvers<void>();
    const read = Promise.withResolvers<void>();
    let reads = 0;
    const readSlowly = async (run: Parameters<typeof database.read>[0]) => {
      const rows = await database.read(run);
      reads += 1;
      if (reads > 1) return rows;
      read.resolve();
      await response.promise;
      return rows;
    };
    const slow = Object.create(database, { read: { value: readSlowly }, readShort: { value: readSlowly } });
    const reader = new PageReader(slow, SYNC_PAGES, service.context.requestPermits, 7_000);
    const readPage = () => reader.read(principal, 0, 50);
    return { user, readPage, firstWasRead: read.promise, respondFirst: response.resolve, reads: () => reads };
  }

  test('never returns a result that was read before the request', async () => {
    const { user, readPage, firstWasRead, respondFirst } = await openSlowReader();
    const first = readPage();
    await firstWasRead;
    await user.post('/bookmarks/add', { url: 'https://example.org/' });
    const second = readPage();
    respondFirst();
    expect((await first).count).toBe(0);
    expect((await second).count).toBe(1);
  });

  test('shares its statement with at most 249 others', async () => {
    const { user, readPage, respondFirst, reads } = await openSlowReader();
    await user.post('/bookmarks/add', { url: 'https://example.org/' });
    respondFirst();
    const pages = await Promise.all(Array.from({ length: 1_001 }, readPage));
    expect(pages.every(({ count }) => count === 1)).toBe(true);
    expect(reads()).toBe(5);
  });

  test('does not wait for a statement that hangs', async () => {
    const { readPage, firstWasRead, respondFirst } = await openSlowReader();
    const first = readPage();
    await firstWasRead;
    expect((await readPage()).count).toBe(0);
    respondFirst();
    await first;
  });
});
