import { expect, test } from 'vitest';
import { BookmarkClient, MemoryStore } from '../../src/client/index.ts';
import { DAMAGES, damage, findFaults, readCopy, sortFaults } from '../support/copy-faults.ts';
import { CountedRequests } from '../support/counted-requests.ts';
import { useService } from '../support/service.ts';
import { seededRandom } from '../support/two-way.ts';

/** Verifies copies of 50,000 bookmarks. `TEST_SEED` repeats a run. */

const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const BOOKMARKS = 50_000;
const TAGS = 500;
const ROUNDS = 5;
const FAULTS = 10;

const service = useService({ rateLimitRequests: 100_000 });

test('a mirror of 50,000 with ten random faults is repaired with less than 200 kB, and a right one costs one request', async () => {
  console.log(`verify: TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  const user = await service.user({ premium: true });
  const bookmarks = Array.from({ length: BOOKMARKS }, (_, n) => ({
    url: `https://example.org/articles/${n}`,
    title: `Article ${n} about something that somebody wanted to read later`,
    comment: 'Somebody recommended this, and it is worth reading twice.',
    tags: Array.from({ length: below(5) }, () => `tag ${below(TAGS)}`),
  }));
  expect((await user.post('/import', { bookmarks })).body).toMatchObject({ imported: BOOKMARKS });
  const requests = new CountedRequests();
  const client = new BookmarkClient({ baseUrl: service.origin, token: user.token, fetch: requests.fetch });
  const store = new MemoryStore();
  await Array.fromAsync(client.mirror({ store, follow: false }));
  const truth = await readCopy(store);
  // A lost tag is missing on many bookmarks, which are then all wrong.
  const kinds = DAMAGES.filter((kind) => kind !== 'lost tag');
  const sizes: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let n = 0; n < FAULTS; n += 1)
      await damage(store, kinds[below(kinds.length)]!, 1 + below(BOOKMARKS));
    const faults = findFaults(await readCopy(store), truth);
    requests.receivedBytes = 0;
    const mirror = client.mirror({ store });
    expect(sortFaults(await mirror.verify())).toEqual(faults);
    expect(await readCopy(store)).toEqual(truth);
    expect(requests.receivedBytes).toBeLessThan(200_000);
    sizes.push(requests.receivedBytes);
    requests.paths.length = 0;
    expect(await mirror.verify()).toEqual([]);
    expect(requests.paths).toEqual(['/bookmarks/digest']);
  }
  console.log(`verify: received ${sizes.map((size) => `${Math.round(size / 1_000)} kB`).join(', ')}`);
});
