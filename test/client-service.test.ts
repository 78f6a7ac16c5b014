import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ApiError, type Bookmark, BookmarkClient } from '../src/client/index.ts';
import type { Endpoints, ErrorCode } from '../src/domain/resources.ts';
import { STATUS_BY_CODE } from '../src/http/error-responses.ts';
import { ROUTES } from '../src/routes/app.ts';
import { createDatabase } from './support/database.ts';
import { startService, type TestService, useService } from './support/service.ts';

/** Tests of the client with a running service. */

const service = useService();

type Fetch = typeof fetch;

const clientOf = (token: string | undefined, options: { fetch?: Fetch; retryForMs?: number } = {}) =>
  new BookmarkClient({ baseUrl: `${service.origin}/api/v1`, token, random: () => 0, ...options });

/** Returns a `fetch` that loses the first response for a path, after the service has handled the request. */
function losingFirstResponse(path: string): Fetch {
  let lost = false;
  return async (url, init) => {
    const response = await fetch(url, init);
    if (lost || !String(url).endsWith(path)) return response;
    lost = true;
    await response.arrayBuffer();
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
  };
}

const urlsOf = (bookmarks: Bookmark[]) => bookmarks.map(({ url }) => url);
const page = (i: number) => ({ url: `https://example.org/${i}` });

describe('the progress of an upload', () => {
  const bookmarks = Array.from({ length: 2_000 }, (_, i) => ({ ...page(i), comment: 'é'.repeat(200) }));

  test('is reported from the first byte to the last, and again for a retry', async () => {
    const { token } = await service.user();
    const seen: [number, number][] = [];
    const client = clientOf(token, { fetch: losingFirstResponse('/import') });
    const onUpload = (bytes: number, total: number) => seen.push([bytes, total]);
    expect(await client.importBookmarks({ bookmarks, mode: 'merge' }, { onUpload })).toMatchObject({
      imported: 2_000,
    });
    const total = Buffer.byteLength(JSON.stringify({ bookmarks, mode: 'merge' }));
    const chunkStarts = Array.from({ length: Math.ceil(total / 65_536) }, (_, i) => i * 65_536);
    const oneUpload = [...chunkStarts, total];
    expect(seen).toEqual([...oneUpload, ...oneUpload].map((bytes) => [bytes, total]));
  });

  test('does not hide the reason why the service refuses the upload', async () => {
    const importing = clientOf('bka_1_wrong').importBookmarks({ bookmarks }, { onUpload: () => {} });
    await expect(importing).rejects.toMatchObject({ code: 'INVALID_TOKEN', status: 401 });
  });
});

describe('every endpoint', () => {
  test('has a method in the client, which returns what its type says', async () => {
    const paths = new Set<string>();
    const spy: Fetch = (url, init) => {
      paths.add(new URL(String(url)).pathname.replace('/api/v1', ''));
      return fetch(url, init);
    };
    const code = await service.invite('methods@example.org');
    const session = await clientOf(undefined, { fetch: spy }).exchangeInvite(code);
    expect(session.user.email).toBe('methods@example.org');
    const client = clientOf(undefined, { fetch: spy }).withToken(session.token);

    const added = await client.addBookmark({ url: 'https://example.org/a', title: 'A', tags: ['x'] });
    expect(added).toMatchObject({ url: 'https://example.org/a', title: 'A', comment: '' });
    expect((await client.editBookmark({ id: added.id, comment: 'changed' })).comment).toBe('changed');
    expect((await client.getBookmarks({ id: added.id })).bookmarks).toMatchObject([{ comment: 'changed' }]);
    const found = await client.searchBookmarks({ query: 'changed' });
    expect([found.total, found.bookmarks[0]?.id]).toEqual([1, added.id]);
    expect((await client.listBookmarks()).bookmarks).toHaveLength(1);
    expect((await client.syncBookmarks({ cursor: 0 })).cursor).toBe(added.id);
    expect((await client.readChanges()).bookmarks.map(({ id }) => id)).toEqual([added.id]);
    expect((await client.digestBookmarks({ parts: 2 })).parts).toMatchObject([{ count: 1 }]);
    const tag = await client.createTag({ name: 'y' });
    expect((await client.renameTag({ id: tag.id, name: 'z' })).name).toBe('z');
    expect((await client.listTags()).tags.map(({ name, bookmark_count }) => [name, bookmark_count])).toEqual([
      ['x', 1],
      ['z', 0],
    ]);
    const { id } = await client.createTag({ name: 'w' });
    expect(await client.mergeTags({ id, into_id: tag.id })).toMatchObject({ name: 'z', bookmark_count: 0 });
    await client.createTag({ name: 'folder/tag' });
    expect(await client.renameTagPath('Folder', 'box')).toEqual({ name: 'box', renamed: 1 });
    expect(await client.deleteTagPath('Box')).toEqual({ deleted: true });
    expect(await client.deleteTag(tag.id)).toEqual({ deleted: true });
    const whole = await client.exportBookmarks();
    expect(whole.count).toBe(1);
    expect(await client.importBookmarks({ bookmarks: whole.bookmarks })).toEqual({
      imported: 0,
      skipped: 1,
      errors: [],
    });
    const several = { ids: [added.id, 1], add_tags: ['z'] };
    expect(await client.editBookmarks(several)).toEqual({ edited: true, count: 1, missing: [1] });
    expect(await client.deleteBookmark({ id: added.id, trash: true })).toEqual({ deleted: true });
    for (const choice of [[added.id], { ids: [added.id], trash: true }]) {
      expect(await client.deleteBookmarks(choice)).toEqual({
        deleted: true,
        count: 0,
        missing: [added.id],
      });
    }
    expect((await client.listTrash()).bookmarks).toMatchObject([{ id: added.id }]);
    const written = await client.writeBookmarks({
      operations: [
        { do: 'add', url: 'https://example.org/b' },
        { do: 'edit', id: 1, title: 'none' },
      ],
    });
    expect(written.results).toMatchObject([{ url: 'https://example.org/b' }, { code: 'NOT_FOUND' }]);
    const { restored } = await client.restoreBookmarks([added.id, 1]);
    expect(restored).toMatchObject([{ id: added.id }]);
    await client.deleteBookmark(restored[0]!.new_id);
    expect(await client.deleteFromTrash([1])).toEqual({ deleted: true, count: 0 });
    expect(await client.emptyTrash()).toEqual({ deleted: true, count: 0 });
    expect((await client.profile()).email).toBe('methods@example.org');
    expect(await client.account()).toMatchObject({ email: 'methods@example.org', scope: 'write' });
    const own = await client.createToken({ name: 'script', scope: 'write', expires_in_days: null });
    expect(await client.withToken(own.token).profile()).toMatchObject({ email: 'methods@example.org' });
    expect((await client.listTokens()).tokens.map(({ id, name }) => [id, name])).toEqual([
      [own.id, 'script'],
    ]);
    expect(await client.revokeToken(own.id)).toEqual({ revoked: true });
    expect((await client.listSessions()).sessions.map(({ is_current }) => is_current)).toEqual([true]);
    expect(await client.revokeOtherSessions()).toEqual({ revoked: 0 });
    const { token: other } = await service.session('methods@example.org');
    const { sessions } = await client.listSessions();
    expect(await client.revokeSession(sessions.find((each) => !each.is_current)!.id)).toEqual({
      revoked: true,
    });
    await expect(clientOf(other).profile()).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
    expect((await client.logout()).logged_out).toBe(true);
    await expect(client.profile()).rejects.toMatchObject({ code: 'INVALID_TOKEN', status: 401 });

    const leaving = client.withToken((await service.session('leaving@example.org')).token);
    expect(await leaving.deleteAccount('Leaving@example.org')).toEqual({ deleted: true });
    const exchange = {
      code: 'x'.repeat(43),
      code_verifier: 'v'.repeat(43),
      redirect_uri: 'http://127.0.0.1:8123/signed-in',
    };
    await expect(client.exchangeCode(exchange)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(client.exchangeDeviceCode('AAAABBBBCCCC')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect([...paths].sort()).toEqual(ROUTES.map(({ path }) => path).sort());
  });

  test('is declared once for the service and its clients', () => {
    const declared = ROUTES.map(({ path }) => path) satisfies string[] as (keyof Endpoints)[];
    expect(new Set(declared).size).toBe(declared.length);
    const codes = STATUS_BY_CODE satisfies Record<ErrorCode, number>;
    // This line does not compile if the service has a code that the client does not know.
    const known: ErrorCode[] = Object.keys(codes) as (keyof typeof STATUS_BY_CODE)[];
    expect(known).toHaveLength(10);
  });

  test('the client imports nothing but its own files and types', () => {
    const folder = join(import.meta.dirname, '../src/client');
    // The SQLite store is not checked: it runs only in Node and has its own entry point.
    const names = readdirSync(folder).filter((name) => /^(?!sqlite-).*\.ts$/.test(name));
    const specifiers = names.flatMap((name) =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(/from '([^']+)'/g)].map(([, from]) => from!),
    );
    expect(
      specifiers.filter(
        (from) =>
          !/^\.\/[a-z-]+\.ts$/.test(from) &&
          !/^\.\.\/domain\/(bookmark-fields|bounds|request-kinds|resources|text|thrown|timestamp|waits|web-url)\.ts$/.test(
            from,
          ),
      ),
    ).toEqual([]);
  });
});

describe('an error of the client', () => {
  test('carries the code, the status and the request id of the log', async () => {
    const user = await service.user();
    const error = await clientOf(user.token)
      .deleteBookmark(123_456_789)
      .catch((reason) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'NOT_FOUND', status: 404, retryAfterSeconds: undefined });
    expect(error.requestId).toMatch(/^[0-9a-f]{32}\.1$/);
  });

  test('the error of an exceeded limit says how long to wait', async () => {
    await using limited = await startService({ rateLimitRequests: 1, rateLimitWindowSeconds: 60 });
    const { token } = await limited.user();
    const baseUrl = `${limited.origin}/api/v1`;
    await new BookmarkClient({ baseUrl, token }).profile();
    const second = new BookmarkClient({ baseUrl, token, retryForMs: 0 });
    const error = await second.profile().catch((reason) => reason);
    expect(error).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
    expect(error.retryAfterSeconds).toBeGreaterThan(50);
  });
});

describe('a lost response', () => {
  test('does not make the client add a bookmark twice', async () => {
    const user = await service.user();
    const client = clientOf(user.token, { fetch: losingFirstResponse('/bookmarks/add') });
    const added = await client.addBookmark({ url: 'https://example.org/once' });
    const { bookmarks } = await client.listBookmarks();
    expect(bookmarks).toEqual([added]);
  });

  test("does not turn the creation of the client's own tag into a conflict", async () => {
    const user = await service.user();
    const client = clientOf(user.token, { fetch: losingFirstResponse('/tags/create') });
    const tag = await client.createTag({ name: 'mine' });
    expect((await client.listTags()).tags).toEqual([{ id: tag.id, name: 'mine', bookmark_count: 0 }]);
  });

  test.each([
    ['merge', 1],
    ['replace', 0],
  ] as const)(
    'does not change the result of a %s: the retry reports what the first try did',
    async (mode, skipped) => {
      const user = await service.user();
      await clientOf(user.token).addBookmark(page(1));
      const client = clientOf(user.token, { fetch: losingFirstResponse('/import') });
      const result = await client.importBookmarks({ bookmarks: [page(1), page(2)], mode });
      expect(result).toEqual({ imported: 2 - skipped, skipped, errors: [] });
      expect(urlsOf((await client.listBookmarks()).bookmarks)).toEqual(
        urlsOf([page(1), page(2)] as Bookmark[]),
      );
    },
  );

  test('does not make a repeated replace delete what was added since', async () => {
    const user = await service.user();
    const other = clientOf(user.token);
    const lose = losingFirstResponse('/import');
    const client = clientOf(user.token, {
      fetch: async (url, init) => {
        try {
          return await lose(url, init);
        } catch (error) {
          await other.addBookmark(page(3));
          throw error;
        }
      },
    });
    await client.importBookmarks({ bookmarks: [page(1)], mode: 'replace' });
    expect(urlsOf((await other.listBookmarks()).bookmarks)).toEqual([page(1).url, page(3).url]);
  });

  test('does not make a repeated edit overwrite what another device wrote since', async () => {
    const user = await service.user();
    const other = clientOf(user.token);
    const { id } = await other.addBookmark(page(1));
    const losing = losingFirstResponse('/bookmarks/edit');
    const client = clientOf(user.token, {
      fetch: async (...request) => {
        try {
          return await losing(...request);
        } catch (error) {
          await other.editBookmark({ id, title: 'newer' });
          throw error;
        }
      },
    });
    expect((await client.editBookmark({ id, title: 'older' })).title).toBe('older');
    expect((await other.getBookmarks({ id })).bookmarks[0]!.title).toBe('newer');
  });

  test('does not turn a repeated deletion into an error: it succeeds once', async () => {
    const user = await service.user();
    const client = clientOf(user.token, { fetch: losingFirstResponse('/bookmarks/delete') });
    const { id } = await client.addBookmark(page(1));
    expect(await client.deleteBookmark(id)).toEqual({ deleted: true });
    expect((await client.listBookmarks()).bookmarks).toEqual([]);
  });
});

describe('sync', () => {
  test('misses nothing between the list and the polls, while others write', async () => {
    const user = await service.user();
    const writer = clientOf(user.token);
    await writer.importBookmarks({ bookmarks: Array.from({ length: 1_200 }, (_, i) => page(i)) });
    const ids: number[] = [];
    let added = 0;
    const total = 1_200 + 60;
    const write = async () => {
      for (; added < 60; added += 4) {
        await Promise.all([0, 1, 2, 3].map((i) => writer.addBookmark(page(2_000 + added + i))));
      }
    };
    const writing = write();
    for await (const batch of clientOf(user.token).sync()) {
      ids.push(...batch.bookmarks.map(({ id }) => id));
      expect(batch.cursor.split('.')[0]).toBe(String(ids.at(-1)));
      if (ids.length >= total) break;
    }
    await writing;
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(total);
  });

  test('continues after a restart of the service, from the last cursor that was stored', async () => {
    await using database = await createDatabase();
    let running: TestService | undefined = await startService({}, { database });
    const user = await running.user();
    const fetchWhileRunning: Fetch = (url, init) => {
      if (running === undefined) {
        return Promise.reject(
          new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) }),
        );
      }
      return fetch(String(url).replace('http://service', running.origin), init);
    };
    const failed = Promise.withResolvers<void>();
    const client = new BookmarkClient({
      baseUrl: 'http://service/api/v1',
      token: user.token,
      fetch: fetchWhileRunning,
      onRetry: () => failed.resolve(),
    });
    const batches = client.sync();
    await user.post('/bookmarks/add', page(1));
    expect(urlsOf((await batches.next()).value!.bookmarks)).toEqual([page(1).url]);
    const next = batches.next();
    const stopping = running;
    running = undefined;
    await stopping[Symbol.asyncDispose]();
    await failed.promise;
    running = await startService({}, { database });
    await running.post('/bookmarks/add', page(2), { token: user.token });
    const { value } = await next;
    expect(urlsOf(value!.bookmarks)).toEqual([page(2).url]);
    const again = await client.sync({ cursor: value!.cursor, follow: false }).next();
    expect(again.done).toBe(true);
    await running[Symbol.asyncDispose]();
  });

  test('frees its held poll in the service when the caller ends it', async () => {
    const user = await service.user();
    const controller = new AbortController();
    const next = clientOf(user.token).sync({ signal: controller.signal }).next();
    const { notifier } = service.context.coordination;
    await expect.poll(() => notifier.held).toBe(1);
    controller.abort();
    await expect(next).rejects.toBe(controller.signal.reason);
    await expect.poll(() => notifier.held).toBe(0);
  });

  test('ends when its token is revoked', async () => {
    const { token } = await clientOf(undefined).exchangeInvite(await service.invite('revoked@example.org'));
    const client = clientOf(token);
    const next = client.sync().next();
    await expect.poll(() => service.context.coordination.notifier.held).toBe(1);
    await client.logout();
    await expect(next).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
  });
});

describe('below the rate limit', () => {
  test('the service never refuses the client, however much it requests', async () => {
    await using limited = await startService({ rateLimitRequests: 5, rateLimitWindowSeconds: 1 });
    const { token } = await limited.user();
    const statuses: number[] = [];
    const client = new BookmarkClient({
      baseUrl: `${limited.origin}/api/v1`,
      token,
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        statuses.push(response.status);
        return response;
      },
    });
    for (let i = 0; i < 12; i += 1) await client.profile();
    expect(statuses).toEqual(Array(12).fill(200));
  });
});

test('the export stream of the client contains what the export endpoint returns', async () => {
  const user = await service.user();
  const client = clientOf(user.token);
  await client.importBookmarks({ bookmarks: Array.from({ length: 2_500 }, (_, i) => page(i)) });
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of client.exportStream()) text += decoder.decode(chunk, { stream: true });
  const { bookmarks } = await client.exportBookmarks();
  expect(JSON.parse(text).bookmarks).toEqual(bookmarks);
  expect(bookmarks).toHaveLength(2_500);
});
