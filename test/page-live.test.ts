import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { browserTest, type Reader, titlesOf, useBrowser } from './support/browser.ts';
import { fill } from './support/fill.ts';
import { type RedisServer, startRedis } from './support/redis.ts';
import { startService, type TestService, useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// How the page follows changes elsewhere: other devices, other tabs, a lost network, an ended session.

const service = useService();
const browsers = useBrowser();

const shows = (page: Page) => expect.poll(() => titlesOf(page));

const rowOf = (page: Page, title: string) =>
  page.locator('.rows > li').filter({ has: page.locator('.title', { hasText: title }) });

const call = <T = { id: number }>(reader: Reader, path: string, body: object = {}) =>
  reader.post(`/web/api/v1${path}`, body) as Promise<T>;

const add = (reader: Reader, title: string, more: object = {}) =>
  call(reader, '/bookmarks/add', { url: `https://example.org/${encodeURIComponent(title)}`, title, ...more });

/** Resolves when the page holds its poll. From then on it learns of changes. */
const untilFollowing = (of: TestService, count = 1) =>
  expect.poll(() => of.context.coordination.notifier.held).toBe(count);

/** Makes the service seem to fail this many times at a path. */
async function failAt(page: Page, path: string, times: number, response: Parameters<Route['fulfill']>[0]) {
  let left = times;
  await page.route(`**/web/api/v1${path}`, (route) => {
    left -= 1;
    return left >= 0 ? route.fulfill(response) : route.continue();
  });
}

const failure = (status: number, code: string, retryAfter: number) => ({
  status,
  contentType: 'application/json',
  headers: { 'retry-after': String(retryAfter), 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0' },
  body: JSON.stringify({ error: 'not now', code }),
});

describe('changes elsewhere', () => {
  let redis: RedisServer;
  let one: TestService;
  let other: TestService;
  beforeAll(async () => {
    redis = await startRedis();
    const redisAddress = { kind: 'servers', urls: [redis.url] } as const;
    one = await startService({ redisAddress });
    other = await startService({ redisAddress }, { database: one.database });
  });
  afterAll(async () => {
    await other[Symbol.asyncDispose]();
    await one[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  browserTest(
    'shows on a page of another replica: added, edited, deleted, a tag renamed and deleted',
    async () => {
      const reader = await browsers.reader(one);
      const far = await browsers.reader(other, { email: reader.email });
      const { id } = await add(reader, 'First', { tags: ['red'] });
      const page = await reader.open();
      await shows(page).toEqual(['First']);
      await untilFollowing(one);
      await add(far, 'Second');
      await shows(page).toEqual(['Second', 'First']);
      await call(far, '/bookmarks/edit', { id, title: 'First, edited' });
      await shows(page).toEqual(['Second', 'First, edited']);
      const { tags } = await call<{ tags: { id: number }[] }>(far, '/tags/list');
      await call(far, '/tags/update', { id: tags[0]!.id, name: 'crimson' });
      await rowOf(page, 'First').getByText('crimson').waitFor();
      await call(far, '/tags/delete', { id: tags[0]!.id });
      await rowOf(page, 'First').getByText('crimson').waitFor({ state: 'detached' });
      await call(far, '/bookmarks/delete', { id });
      await shows(page).toEqual(['Second']);
      await page.getByText('1 of 10,000').waitFor();
      expect(reader.faults).toEqual([]);
    },
  );

  browserTest('is applied from the page of changes: nothing is read again', async () => {
    const reader = await browsers.reader(one);
    await add(reader, 'Old', { tags: ['red'] });
    const page = await reader.open();
    await shows(page).toEqual(['Old']);
    await untilFollowing(one);
    const asked: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      // The page may still load scripts and offer a passkey.
      if (pathname.startsWith('/web/api/')) asked.push(pathname);
    });
    const ids: number[] = [];
    for (const number of [1, 2, 3, 4, 5])
      ids.push((await add(reader, `New ${number}`, { tags: ['red', `tag ${number}`] })).id);
    await shows(page).toEqual(['New 5', 'New 4', 'New 3', 'New 2', 'New 1', 'Old']);
    await call(reader, '/bookmarks/edit', { id: ids[0], title: 'Edited', tags: ['blue'] });
    await call(reader, '/bookmarks/delete', { id: ids[1] });
    await shows(page).toEqual(['New 5', 'New 4', 'New 3', 'Edited', 'Old']);
    const side = page.getByRole('complementary', { name: 'Tags' });
    for (const count of ['red, 4 bookmarks', 'blue, 1 bookmark', 'tag 2, 0 bookmarks', 'tag 5, 1 bookmark'])
      await side.getByRole('button', { name: count, exact: true }).waitFor();
    await page.getByText('5 of 10,000').waitFor();
    expect(new Set(asked)).toEqual(new Set(['/web/api/v1/bookmarks/changes']));
  });

  browserTest('is applied to a search too: what matches comes, what no longer does goes', async () => {
    const reader = await browsers.reader(one);
    const { id } = await add(reader, 'Kyoto', { tags: ['travel'] });
    await add(reader, 'Osaka', { tags: ['travel'] });
    const page = await reader.open('/?q=tag:travel%20o');
    await shows(page).toEqual(['Osaka', 'Kyoto']);
    await untilFollowing(one);
    let searches = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/bookmarks/search')) searches += 1;
    });
    await add(reader, 'Tokyo');
    await add(reader, 'Nagoya', { tags: ['Travel'] });
    await shows(page).toEqual(['Nagoya', 'Osaka', 'Kyoto']);
    await call(reader, '/bookmarks/edit', { id, tags: [] });
    await shows(page).toEqual(['Nagoya', 'Osaka']);
    await page.getByText('2 bookmarks found').waitFor();
    expect(searches).toBe(0);
    // Only the service knows the order of titles.
    await page.getByLabel('Order').selectOption('By title');
    await add(reader, 'Matsue o', { tags: ['travel'] });
    await shows(page).toEqual(['Matsue o', 'Nagoya', 'Osaka']);
    await page.getByText('3 bookmarks found').waitFor();
  });

  browserTest(
    'a bookmark beyond what was read that is deleted or restored elsewhere leaves the total right',
    async () => {
      const reader = await browsers.reader(one);
      const { id } = await add(reader, 'Oldest', { created_at: '2001-01-01T00:00:00Z' });
      await call(reader, '/bookmarks/edit', { id, comment: 'edited' });
      const bookmarks = Array.from({ length: 80 }, (_, at) => ({ url: `https://example.org/${at}` }));
      await call(reader, '/import', { mode: 'merge', bookmarks });
      const page = await reader.open();
      await page.getByText('81 of 10,000').waitFor();
      await untilFollowing(one);
      await call(reader, '/bookmarks/delete', { id });
      await page.getByText('80 of 10,000').waitFor();
      await call(reader, '/trash/restore', { ids: [id] });
      await page.getByText('81 of 10,000').waitFor();
    },
  );

  browserTest('a replacement of everything shows too', async () => {
    const reader = await browsers.reader(one);
    await add(reader, 'Before');
    const page = await reader.open();
    await shows(page).toEqual(['Before']);
    const bookmarks = [{ url: 'https://example.org/after', title: 'After' }];
    await call(reader, '/import', { mode: 'replace', bookmarks });
    await shows(page).toEqual(['After']);
  });

  browserTest('signing out on another replica ends the session of this page', async () => {
    const reader = await browsers.reader(one);
    const far = await browsers.reader(other, { email: reader.email });
    const page = await reader.open();
    await page.getByText('No bookmarks yet').waitFor();
    await call(far, '/sessions/revoke-others');
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
  });
});

describe('two tabs of one browser', () => {
  browserTest('share one poll, which the other one takes over when the first is closed', async () => {
    const reader = await browsers.reader(service);
    const [page, other] = [await reader.open(), await reader.open()];
    await other.getByText('No bookmarks yet').waitFor();
    await untilFollowing(service);
    await add(reader, 'For both');
    await shows(page).toEqual(['For both']);
    await shows(other).toEqual(['For both']);
    await untilFollowing(service);
    await page.close();
    await add(reader, 'For the other');
    await shows(other).toEqual(['For the other', 'For both']);
  });

  browserTest('share no poll that a page in the back/forward cache would hold', async () => {
    const reader = await browsers.reader(service);
    const page = await reader.open();
    await page.getByText('No bookmarks yet').waitFor();
    await untilFollowing(service);
    const send = (type: string) =>
      page.evaluate((name) => dispatchEvent(new PageTransitionEvent(name, { persisted: true })), type);
    await send('pagehide');
    await untilFollowing(service, 0);
    await send('pageshow');
    await untilFollowing(service);
  });

  browserTest.each([
    ['a new tab', (reader: Reader) => reader.open('/settings').then(() => {})],
    [
      'the back/forward cache',
      (_reader: Reader, page: Page) =>
        page.evaluate(() => {
          dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
        }),
    ],
  ])('show nothing of one user once another has signed in, by %s', async (_, go) => {
    const reader = await browsers.reader(service);
    await add(reader, 'Private');
    const page = await reader.open();
    await shows(page).toEqual(['Private']);
    await reader.post('/web/login/invite', { code: await service.invite(newEmail()) });
    await go(reader, page);
    await page.getByText('No bookmarks yet').waitFor();
  });

  browserTest('both delete the same bookmark: neither complains', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Doomed');
    const [page, other] = [await reader.open(), await reader.open()];
    const clicked = Promise.withResolvers<void>();
    for (const tab of [page, other]) {
      await tab.route('**/bookmarks/delete', async (route) => {
        await clicked.promise;
        await route.continue();
      });
      await rowOf(tab, 'Doomed').getByRole('button', { name: 'Delete' }).click();
    }
    const answered = [page, other].map((tab) => tab.waitForResponse('**/bookmarks/delete'));
    clicked.resolve();
    await Promise.all(answered);
    for (const tab of [page, other]) {
      await tab.getByText('No bookmarks yet').waitFor();
      expect(await tab.locator('.notice.error').count()).toBe(0);
    }
  });
});

describe('unsaved input', () => {
  browserTest('survives that its bookmark is deleted elsewhere', async () => {
    const reader = await browsers.reader(service);
    const { id } = await add(reader, 'Shared');
    const page = await reader.open();
    await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Comment').fill('an hour of work');
    await untilFollowing(service);
    await call(reader, '/bookmarks/delete', { id });
    await page.getByText('deleted elsewhere').waitFor();
    expect(await page.getByLabel('Comment').inputValue()).toBe('an hour of work');
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Shared']);
  });

  browserTest(
    'of a new bookmark closes by itself, also if a deleted one was opened again above it',
    async () => {
      const reader = await browsers.reader(service);
      const { id } = await add(reader, 'Shared');
      const page = await reader.open();
      await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await untilFollowing(service);
      await call(reader, '/bookmarks/delete', { id });
      await page.getByText('deleted elsewhere').waitFor();
      const forms = page.getByRole('form', { name: 'Add bookmark' });
      expect(await forms.count()).toBe(2);
      await forms.first().getByRole('button', { name: 'Save' }).click();
      await shows(page).toEqual(['Shared']);
      await forms.getByRole('button', { name: 'Cancel' }).click();
      expect(await forms.count()).toBe(0);
    },
  );

  browserTest(
    'survives that its bookmark is edited elsewhere, and a search that does not find it',
    async () => {
      const reader = await browsers.reader(service);
      const { id } = await add(reader, 'Shared');
      const page = await reader.open();
      await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Title').fill('Mine');
      await untilFollowing(service);
      await call(reader, '/bookmarks/edit', { id, comment: 'theirs' });
      await page.getByText('Saving changes only the fields that you edited').waitFor();
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine');
      // The caret stays in its place.
      await page.keyboard.type('!');
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine!');
      await page.getByLabel('Search bookmarks').fill('nothing has this');
      await page.getByText('Nothing found', { exact: true }).first().waitFor();
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine!');
      await page.getByRole('button', { name: 'Save' }).click();
      await expect
        .poll(() => call<{ bookmarks: unknown[] }>(reader, '/bookmarks/get', { id }))
        .toMatchObject({ bookmarks: [{ title: 'Mine!', comment: 'theirs' }] });
    },
  );

  browserTest('overwrites nothing unseen, even if the page does not hear of the other edit', async () => {
    const reader = await browsers.reader(service);
    const { id } = await add(reader, 'Shared');
    await reader.context.route('**/bookmarks/changes', (route) =>
      route.request().postDataJSON().wait ? route.abort() : route.continue(),
    );
    const page = await reader.open();
    await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Title').fill('Mine');
    await call(reader, '/bookmarks/edit', { id, title: 'Theirs', comment: 'theirs' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saving changes only the fields that you edited').waitFor();
    expect(await call(reader, '/bookmarks/get', { id })).toMatchObject({ bookmarks: [{ title: 'Theirs' }] });
    await page.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(() => call<{ bookmarks: unknown[] }>(reader, '/bookmarks/get', { id }))
      .toMatchObject({ bookmarks: [{ title: 'Mine', comment: 'theirs' }] });
  });

  browserTest('survives the end of the session: one signs in again in place, and it is saved', async () => {
    const reader = await browsers.reader(service);
    const page = await reader.open();
    await page.getByRole('button', { name: 'Add bookmark' }).click();
    await page.getByLabel('Address').fill('https://example.org/typed');
    await page.getByLabel('Title').fill('Typed before');
    await call(reader, '/logout');
    const dialog = page.getByRole('dialog', { name: 'Sign in again' });
    await dialog.waitFor();
    await dialog.getByLabel('Invite code').fill(await service.invite(reader.email));
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Typed before']);
  });
});

describe('when something fails', () => {
  browserTest('offline is said beside the search field, which stays in reach', async () => {
    const reader = await browsers.reader(service, { width: 390, height: 700 });
    const page = await reader.open();
    await page.getByText('No bookmarks yet').waitFor();
    await untilFollowing(service);
    await reader.context.setOffline(true);
    const notice = await page.getByText('You are offline').boundingBox();
    const search = (await page.getByLabel('Search bookmarks').boundingBox())!;
    expect(notice!.y).toBeGreaterThan(search.y + search.height);
  });

  browserTest('offline is said; back online the page catches up by itself', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Before');
    const page = await reader.open();
    await shows(page).toEqual(['Before']);
    await untilFollowing(service);
    await reader.context.setOffline(true);
    await page.getByText('You are offline').waitFor();
    const code = await service.invite(reader.email);
    const { body } = await service.post('/auth/invite', { code });
    await service.post(
      '/bookmarks/add',
      { url: 'https://example.org/m', title: 'Meanwhile' },
      { token: body.token },
    );
    await reader.context.setOffline(false);
    await shows(page).toEqual(['Meanwhile', 'Before']);
    await page.getByText('You are offline').waitFor({ state: 'hidden' });
  });

  browserTest('a total that cannot be read does not keep the list from reading on', async () => {
    const reader = await browsers.reader(service);
    const bookmarks = Array.from({ length: 400 }, (_, at) => ({
      url: `https://example.org/${at}`,
      title: `Number ${at}`,
    }));
    await call(reader, '/import', { bookmarks });
    const page = await reader.open();
    await page.getByText('400 of 10,000').waitFor();
    await untilFollowing(service);
    for (const loaded of [150, 250]) {
      await page.mouse.wheel(0, 100_000);
      await expect
        .poll(() => page.evaluate(() => document.querySelector<HTMLElement>('.rows')!.offsetHeight))
        .toBe(loaded * 68);
    }
    // A bookmark is deleted that the page has not read. Now only the service knows the total.
    const refused = page.waitForResponse((response) => response.status() === 400);
    const body = { error: 'per_page: is unheard of', code: 'VALIDATION_ERROR' };
    await failAt(page, '/bookmarks/search', 1, { status: 400, json: body });
    const oldest = { sort: 'oldest', per_page: 1 };
    const found = await call<{ bookmarks: { id: number }[] }>(reader, '/bookmarks/search', oldest);
    await call(reader, '/bookmarks/delete', { id: found.bookmarks[0]!.id });
    await refused;
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, 100_000);
        return titlesOf(page);
      })
      .toContain('Number 2');
  });

  browserTest('a 503 is tried again', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'There');
    const page = await reader.openTab();
    await failAt(page, '/bookmarks/search', 1, failure(503, 'UNAVAILABLE', 1));
    await Promise.all([page.getByText('The service is busy').waitFor(), page.goto(service.origin)]);
    await shows(page).toEqual(['There']);
    await page.getByText('The service is busy').waitFor({ state: 'hidden' });
  });

  browserTest('a 429 says when it goes on, and does so', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'There');
    const page = await reader.open();
    await shows(page).toEqual(['There']);
    await failAt(page, '/bookmarks/edit', 1, failure(429, 'RATE_LIMITED', 1));
    await rowOf(page, 'There').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Title').fill('Patient');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/The page continues at \d/).waitFor();
    await shows(page).toEqual(['Patient']);
  });

  browserTest('a refused deletion puts the bookmark back, and says why', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Stays');
    const page = await reader.open();
    await failAt(page, '/bookmarks/delete', 9, failure(500, 'INTERNAL_ERROR', 1));
    await rowOf(page, 'Stays').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No bookmarks yet').waitFor();
    await page.getByText('The bookmarks were not deleted').waitFor();
    await shows(page).toEqual(['Stays']);
  });

  browserTest('a full account is explained, and what was typed stays', async () => {
    const reader = await browsers.reader(service);
    const { id } = await call(reader, '/user/profile');
    await fill(service.database.url, { id }, 10_000);
    const page = await reader.open();
    await page.getByText('10,000 of 10,000').waitFor();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('https://example.org/one-more');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Your account is full').waitFor();
    expect(await page.getByLabel('Address').inputValue()).toBe('https://example.org/one-more');
  });

  browserTest('the way back to a page after signing out shows nothing of it', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Private');
    const page = await reader.open();
    await shows(page).toEqual(['Private']);
    await page.goto(`${service.origin}/openapi.json`);
    await call(reader, '/logout');
    await page.goBack();
    await page.getByLabel('Invite code').waitFor();
  });

  browserTest('a title of 2,048 letters without a blank widens nothing', async () => {
    const reader = await browsers.reader(service, { width: 320, height: 640 });
    await add(reader, 'W'.repeat(2_048), { comment: 'c'.repeat(10_000), tags: ['t'.repeat(255)] });
    const page = await reader.open();
    await page.locator('.rows > li').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.getByRole('button', { name: /^Delete/ }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  });
});
