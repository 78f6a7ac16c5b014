import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BookmarkClient } from '../../src/client/index.ts';
import { SqliteStore } from '../../src/client/sqlite-store.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { useService } from '../support/service.ts';
import { seededRandom } from '../support/two-way.ts';

/**
 * A client with 5,000 offline writes pushes them to two replicas at the default rate limit. The client is killed, and
 * the connections of a replica are cut, at random moments. `TEST_SEED` repeats a run.
 */

const WRITES = 5_000;
const RATE_LIMIT = 100;
const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const limits = { rateLimitRequests: RATE_LIMIT, rateLimitRequestsPremium: RATE_LIMIT };
const one = useService(limits);
const two = useService(limits, { beside: one });

test.each([
  ['nobody is killed', 0],
  ['the client is killed and a replica is cut off at random moments', 0.3],
])(
  '5,000 offline writes are applied once each if %s',
  async (_, faults) => {
    console.log(`outbox-under-kills: TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const replicas = [one, two];
    const user = await one.user({ premium: true });
    const folder = makeFolder('outbox');
    onTestFinished(() => removeFolder(folder));
    const path = join(folder, 'copy.sqlite');
    let requests = 0;
    let waits = 0;
    let kills = 0;
    let isPushing = true;

    /** Opens the file as a new process does. */
    const open = () => {
      const life = new AbortController();
      const kill = () => {
        kills += 1;
        life.abort(new Error('killed'));
      };
      const client = new BookmarkClient({
        baseUrl: `${one.origin}/api/v1`,
        token: user.token,
        onQuotaWait: () => {
          waits += 1;
        },
        fetch: async (url, init) => {
          requests += 1;
          const replica = replicas[Math.floor(random() * 2)]!;
          if (random() < faults / 3) kill();
          const answering = fetch(String(url).replace(one.origin, replica.origin), { ...init, signal: null });
          if (random() < faults / 3)
            setTimeout(() => isPushing && replica.app.server.closeAllConnections(), random() * 200);
          const response = await answering;
          const text = await response.text();
          if (random() < faults / 3) kill();
          life.signal.throwIfAborted();
          return new Response(text, response);
        },
      });
      const store = new SqliteStore(path);
      return { store, collection: client.collection(store), signal: life.signal };
    };

    const first = open();
    for (let n = 0; n < WRITES; n += 1) await first.collection.add({ url: `https://example.org/${n}` });
    first.store[Symbol.dispose]();
    const beganMs = performance.now();
    for (let isSent = false; !isSent; ) {
      const { store, collection, signal } = open();
      isSent = await collection.sync({ signal, unreachableForMs: 60_000 }).then(
        (reports) => {
          expect(reports).toEqual([]);
          return true;
        },
        (error) => {
          expect(error.message).toBe('killed');
          return false;
        },
      );
      store[Symbol.dispose]();
    }
    isPushing = false;
    const seconds = (performance.now() - beganMs) / 1_000;
    console.log(
      `outbox-under-kills: ${seconds.toFixed(1)} s, ${requests} requests, ${kills} kills, ${waits} waits`,
    );
    const { bookmarks } = (await user.post('/export')).body;
    expect(bookmarks.map(({ url }: { url: string }) => url)).toEqual(
      Array.from({ length: WRITES }, (_, n) => `https://example.org/${n}`),
    );
    const last = open();
    expect(await last.collection.list()).toEqual(bookmarks);
    expect(await last.collection.pending()).toEqual([]);
    last.store[Symbol.dispose]();
    // Without faults, the writes and the changes need fewer requests than a minute has.
    if (faults === 0) expect([requests < RATE_LIMIT / 2, waits]).toEqual([true, 0]);
  },
  600_000,
);
