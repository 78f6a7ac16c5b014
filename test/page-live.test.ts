import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { fill } from './support/fill.ts';
import { type RedisServer, startRedis } from './support/redis.ts';
import { startService, type TestService, useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// Tests how the page reacts to other devices, other tabs, a lost network and an ended session.

const service = useService();
const browsers = useBrowser();

const shows = (page: Page) => expect.poll(() => titlesOf(page));

const rowOf = (page: Page, title: string) =>
  page.locator('.rows > li').filter({ has: page.locator('.title', { hasText: title }) });

const call = <T = { id: number }>(browser: UserBrowser, path: string, body: object = {}) =>
  browser.post(`/web/api/v1${path}`, body) as Promise<T>;

const add = (browser: UserBrowser, title: string, more: object = {}) =>
  call(browser, '/bookmarks/add', {
    url: `https://example.org/${encodeURIComponent(title)}`,
    title,
    ...more,
  });

/** Resolves when the service holds this many polls. From then on, the page learns of changes immediately. */
const untilFollowing = (of: TestService, count = 1) =>
  expect.poll(() => of.context.coordination.notifier.held).toBe(count);

/** The height of every row in a wide window, in pixels. */
const ROW_HEIGHT = 68;

/** Replaces the first `times` responses of a path with `response`. */
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
    'appear on a page of another replica: bookmarks added, edited and deleted, a tag renamed and deleted',
    async () => {
      const browser = await browsers.signedIn(one);
      const far = await browsers.signedIn(other, { email: browser.email });
      const { id } = await add(browser, 'First', { tags: ['red'] });
      const page = await browser.open();
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
      expect(browser.faults).toEqual([]);
    },
  );

  browserTest('are applied from the responses to polls: nothing is read again', async () => {
    const browser = await browsers.signedIn(one);
    await add(browser, 'Old', { tags: ['red'] });
    const page = await browser.open();
    await shows(page).toEqual(['Old']);
    await untilFollowing(one);
    const asked: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      // The page may still load scripts, and ask the service whether to offer a passkey.
      if (pathname.startsWith('/web/api/')) asked.push(pathname);
    });
    const ids: number[] = [];
    for (const number of [1, 2, 3, 4, 5])
      ids.push((await add(browser, `New ${number}`, { tags: ['red', `tag ${number}`] })).id);
    await shows(page).toEqual(['New 5', 'New 4', 'New 3', 'New 2', 'New 1', 'Old']);
    await call(browser, '/bookmarks/edit', { id: ids[0], title: 'Edited', tags: ['blue'] });
    await call(browser, '/bookmarks/delete', { id: ids[1] });
    await shows(page).toEqual(['New 5', 'New 4', 'New 3', 'Edited', 'Old']);
    const side = page.getByRole('complementary', { name: 'Tags' });
    for (const count of ['red, 4 bookmarks', 'blue, 1 bookmark', 'tag 2, 0 bookmarks', 'tag 5, 1 bookmark'])
      await side.getByRole('button', { name: count, exact: true }).waitFor();
    await page.getByText('5 of 10,000').waitFor();
    expect(new Set(asked)).toEqual(new Set(['/web/api/v1/bookmarks/changes']));
  });

  browserTest('are applied to a search too: new matches appear, and former matches disappear', async () => {
    const browser = await browsers.signedIn(one);
    const { id } = await add(browser, 'Kyoto', { tags: ['travel'] });
    await add(browser, 'Osaka', { tags: ['travel'] });
    const page = await browser.open('/?q=tag:travel%20o');
    await shows(page).toEqual(['Osaka', 'Kyoto']);
    await untilFollowing(one);
    let searches = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/bookmarks/search')) searches += 1;
    });
    await add(browser, 'Tokyo');
    await add(browser, 'Nagoya', { tags: ['Travel'] });
    await shows(page).toEqual(['Nagoya', 'Osaka', 'Kyoto']);
    await call(browser, '/bookmarks/edit', { id, tags: [] });
    await shows(page).toEqual(['Nagoya', 'Osaka']);
    await page.getByText('2 bookmarks found').waitFor();
    expect(searches).toBe(0);
    // Only the service knows the order of titles.
    await page.getByLabel('Order').selectOption('By title');
    await add(browser, 'Matsue o', { tags: ['travel'] });
    await shows(page).toEqual(['Matsue o', 'Nagoya', 'Osaka']);
    await page.getByText('3 bookmarks found').waitFor();
  });

  browserTest(
    'keep the total right if a bookmark that the page has not read is deleted or restored',
    async () => {
      const browser = await browsers.signedIn(one);
      const { id } = await add(browser, 'Oldest', { created_at: '2001-01-01T00:00:00Z' });
      await call(browser, '/bookmarks/edit', { id, comment: 'edited' });
      const bookmarks = Array.from({ length: 80 }, (_, at) => ({ url: `https://example.org/${at}` }));
      await call(browser, '/import', { mode: 'merge', bookmarks });
      const page = await browser.open();
      await page.getByText('81 of 10,000').waitFor();
      await untilFollowing(one);
      await call(browser, '/bookmarks/delete', { id, trash: true });
      await page.getByText('80 of 10,000').waitFor();
      await call(browser, '/trash/restore', { ids: [id] });
      await page.getByText('81 of 10,000').waitFor();
    },
  );

  browserTest('leave the total right if the first search already counted a new bookmark', async () => {
    const browser = await browsers.signedIn(one);
    const bookmarks = Array.from({ length: 80 }, (_, at) => ({ url: `https://example.org/${at}` }));
    await call(browser, '/import', { mode: 'merge', bookmarks });
    const page = await browser.openTab();
    let searches = 0;
    // The bookmark is added after the page has its cursor, and before its first search. It is beyond the first page.
    await page.route('**/bookmarks/search', async (route) => {
      searches += 1;
      if (searches === 1) await add(browser, 'Oldest', { created_at: '2001-01-01T00:00:00Z' });
      await route.continue();
    });
    const changed = Promise.withResolvers<void>();
    await page.route('**/bookmarks/changes', async (route) => {
      const response = await route.fetch({ timeout: 0 });
      await route.fulfill({ response });
      if ((await response.text()).includes('Oldest')) changed.resolve();
    });
    await page.goto(one.origin);
    await changed.promise;
    // The page cannot know the total, so it reads it again.
    await expect.poll(() => searches).toBeGreaterThan(1);
    await page.getByText('81 of 10,000').waitFor();
  });

  browserTest('leave the counts of tags right if these already counted a new bookmark', async () => {
    const browser = await browsers.signedIn(one);
    const bookmarks = Array.from({ length: 80 }, (_, at) => ({ url: `https://example.org/${at}` }));
    await call(browser, '/import', { mode: 'merge', bookmarks });
    const page = await browser.openTab();
    let tagReads = 0;
    // The bookmark is added after the page has its cursor, and before its tags. It is beyond the first page.
    await page.route('**/tags/list', async (route) => {
      tagReads += 1;
      if (tagReads === 1)
        await add(browser, 'Oldest', { tags: ['rare'], created_at: '2001-01-01T00:00:00Z' });
      await route.continue();
    });
    const once = page
      .getByRole('complementary', { name: 'Tags' })
      .getByRole('button', { name: 'rare, 1 bookmark', exact: true });
    await page.route('**/bookmarks/changes', async (route) => {
      if (route.request().postDataJSON().from === undefined) await once.waitFor();
      await route.continue();
    });
    await page.goto(one.origin);
    // The page cannot know the counts, so it reads them again.
    await expect.poll(() => tagReads).toBe(2);
    await once.waitFor();
    expect(browser.faults).toEqual([]);
  });

  browserTest('appear even if an import has replaced all bookmarks', async () => {
    const browser = await browsers.signedIn(one);
    await add(browser, 'Before');
    const page = await browser.open();
    await shows(page).toEqual(['Before']);
    const bookmarks = [{ url: 'https://example.org/after', title: 'After' }];
    await call(browser, '/import', { mode: 'replace', bookmarks });
    await shows(page).toEqual(['After']);
  });

  browserTest('include the end of the session: the page asks the user to sign in again', async () => {
    const browser = await browsers.signedIn(one);
    const far = await browsers.signedIn(other, { email: browser.email });
    const page = await browser.open();
    await page.getByText('No bookmarks yet').waitFor();
    await call(far, '/sessions/revoke-others');
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
  });
});

describe('two tabs of one browser', () => {
  browserTest('share one poll: if the tab that polls is closed, the other one polls', async () => {
    const browser = await browsers.signedIn(service);
    const [page, other] = [await browser.open(), await browser.open()];
    await other.getByText('No bookmarks yet').waitFor();
    await untilFollowing(service);
    await add(browser, 'For both');
    await shows(page).toEqual(['For both']);
    await shows(other).toEqual(['For both']);
    await untilFollowing(service);
    await page.close();
    await add(browser, 'For the other');
    await shows(other).toEqual(['For the other', 'For both']);
  });

  browserTest('stop their poll while the page is in the back/forward cache', async () => {
    const browser = await browsers.signedIn(service);
    const page = await browser.open();
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
    ['a new tab', (browser: UserBrowser) => browser.open('/settings').then(() => {})],
    [
      'the back/forward cache',
      (_browser: UserBrowser, page: Page) =>
        page.evaluate(() => {
          dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
        }),
    ],
  ])('show nothing of one user after another one has signed in, by %s', async (_, go) => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Private');
    const page = await browser.open();
    await shows(page).toEqual(['Private']);
    await browser.post('/web/login/invite', { code: await service.invite(newEmail()) });
    await go(browser, page);
    await page.getByText('No bookmarks yet').waitFor();
  });

  browserTest('can both delete the same bookmark without an error', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Doomed');
    const [page, other] = [await browser.open(), await browser.open()];
    const bothClicked = Promise.withResolvers<void>();
    for (const tab of [page, other]) {
      await tab.route('**/bookmarks/delete', async (route) => {
        await bothClicked.promise;
        await route.continue();
      });
      await rowOf(tab, 'Doomed').getByRole('button', { name: 'Delete' }).click();
    }
    const answered = [page, other].map((tab) => tab.waitForResponse('**/bookmarks/delete'));
    bothClicked.resolve();
    await Promise.all(answered);
    for (const tab of [page, other]) {
      await tab.getByText('No bookmarks yet').waitFor();
      expect(await tab.locator('.notice.error').count()).toBe(0);
    }
  });
});

describe('unsaved input', () => {
  browserTest('is kept when its bookmark is deleted elsewhere', async () => {
    const browser = await browsers.signedIn(service);
    const { id } = await add(browser, 'Shared');
    const page = await browser.open();
    await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Comment').fill('an hour of work');
    await untilFollowing(service);
    await call(browser, '/bookmarks/delete', { id });
    await page.getByText('deleted elsewhere').waitFor();
    expect(await page.getByLabel('Comment').inputValue()).toBe('an hour of work');
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Shared']);
  });

  browserTest(
    'in two forms for new bookmarks is kept separately, and each form closes by itself',
    async () => {
      const browser = await browsers.signedIn(service);
      const { id } = await add(browser, 'Shared');
      const page = await browser.open();
      await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await untilFollowing(service);
      await call(browser, '/bookmarks/delete', { id });
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
    'is kept when its bookmark is edited elsewhere, and during a search that does not find the bookmark',
    async () => {
      const browser = await browsers.signedIn(service);
      const { id } = await add(browser, 'Shared');
      const page = await browser.open();
      await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Title').fill('Mine');
      await untilFollowing(service);
      await call(browser, '/bookmarks/edit', { id, comment: 'theirs' });
      await page.getByText('Saving changes only the fields that you edited').waitFor();
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine');
      // The caret is still where it was.
      await page.keyboard.type('!');
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine!');
      await page.getByLabel('Search bookmarks').fill('nothing has this');
      await page.getByText('Nothing found', { exact: true }).first().waitFor();
      expect(await page.getByLabel('Title').inputValue()).toBe('Mine!');
      await page.getByRole('button', { name: 'Save' }).click();
      await expect
        .poll(() => call<{ bookmarks: unknown[] }>(browser, '/bookmarks/get', { id }))
        .toMatchObject({ bookmarks: [{ title: 'Mine!', comment: 'theirs' }] });
    },
  );

  browserTest('overwrites no edit that the user has not seen, even if polls fail', async () => {
    const browser = await browsers.signedIn(service);
    const { id } = await add(browser, 'Shared');
    await browser.context.route('**/bookmarks/changes', (route) =>
      route.request().postDataJSON().wait ? route.abort() : route.continue(),
    );
    const page = await browser.open();
    await rowOf(page, 'Shared').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Title').fill('Mine');
    await call(browser, '/bookmarks/edit', { id, title: 'Theirs', comment: 'theirs' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saving changes only the fields that you edited').waitFor();
    await page.getByText('Title: here “Mine”, elsewhere “Theirs”').waitFor();
    expect(await call(browser, '/bookmarks/get', { id })).toMatchObject({ bookmarks: [{ title: 'Theirs' }] });
    await page.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(() => call<{ bookmarks: unknown[] }>(browser, '/bookmarks/get', { id }))
      .toMatchObject({ bookmarks: [{ title: 'Mine', comment: 'theirs' }] });
  });

  browserTest('is kept when the session ends, and is saved after the user has signed in again', async () => {
    const browser = await browsers.signedIn(service);
    const page = await browser.open();
    await page.getByRole('button', { name: 'Add bookmark' }).click();
    await page.getByLabel('Address').fill('https://example.org/typed');
    await page.getByLabel('Title').fill('Typed before');
    await call(browser, '/logout');
    const dialog = page.getByRole('dialog', { name: 'Sign in again' });
    await dialog.waitFor();
    await dialog.getByLabel('Invite code').fill(await service.invite(browser.email));
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Typed before']);
  });

  browserTest('is not covered by a second dialog if a request of the old session fails late', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Found');
    const page = await browser.open();
    await shows(page).toEqual(['Found']);
    const signedIn = Promise.withResolvers<void>();
    await browser.context.route(
      '**/bookmarks/search',
      async (route) => {
        await signedIn.promise;
        await route.fulfill({ status: 401, json: { error: 'invalid token', code: 'INVALID_TOKEN' } });
      },
      { times: 1 },
    );
    const search = page.waitForRequest('**/bookmarks/search');
    await page.getByLabel('Search bookmarks').fill('found');
    await search;
    await call(browser, '/logout');
    const dialog = page.getByRole('dialog', { name: 'Sign in again' });
    await dialog.getByLabel('Invite code').fill(await service.invite(browser.email));
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    const repeated = page.waitForResponse((response) => response.url().endsWith('/search') && response.ok());
    signedIn.resolve();
    await repeated;
    await shows(page).toEqual(['Found']);
    expect(await dialog.count()).toBe(0);
  });
});

describe('when something fails', () => {
  browserTest('the message that the page is offline does not cover the search field', async () => {
    const browser = await browsers.signedIn(service, { width: 390, height: 700 });
    const page = await browser.open();
    await page.getByText('No bookmarks yet').waitFor();
    await untilFollowing(service);
    await browser.context.setOffline(true);
    const notice = await page.getByText('You are offline').boundingBox();
    const search = (await page.getByLabel('Search bookmarks').boundingBox())!;
    expect(notice!.y).toBeGreaterThan(search.y + search.height);
  });

  browserTest('the page says that it is offline, and catches up when it is online again', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Before');
    const page = await browser.open();
    await shows(page).toEqual(['Before']);
    await untilFollowing(service);
    await browser.context.setOffline(true);
    await page.getByText('You are offline').waitFor();
    const code = await service.invite(browser.email);
    const { body } = await service.post('/auth/invite', { code });
    await service.post(
      '/bookmarks/add',
      { url: 'https://example.org/m', title: 'Meanwhile' },
      { token: body.token },
    );
    await browser.context.setOffline(false);
    await shows(page).toEqual(['Meanwhile', 'Before']);
    await page.getByText('You are offline').waitFor({ state: 'hidden' });
  });

  browserTest('without a network, a search filters the loaded bookmarks, and a save can wait', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Apple pie', { tags: ['food'] });
    await add(browser, 'Bicycle');
    const page = await browser.open();
    await shows(page).toEqual(['Bicycle', 'Apple pie']);
    await untilFollowing(service);
    await page.evaluate(() => {
      Object.defineProperty(navigator, 'onLine', { value: true, configurable: true });
    });
    await browser.context.setOffline(true);
    const search = page.getByLabel('Search bookmarks');
    await search.fill('pie');
    await shows(page).toEqual(['Apple pie']);
    await page.getByText('Only the 2 bookmarks that this page has loaded are searched').waitFor();
    await page.getByText('1 bookmark found').waitFor();
    await search.fill('nothing');
    await shows(page).toEqual([]);
    await page.getByRole('heading', { name: 'Nothing found' }).waitFor();
    await search.fill('');
    await shows(page).toEqual(['Bicycle', 'Apple pie']);

    const later = page.getByRole('button', { name: 'Save when online' });
    await page.getByRole('button', { name: 'Edit “Bicycle”' }).click();
    await page.getByLabel('Title').fill('Bicycle, edited');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await later.click();
    await page.getByText('Waiting for the connection').waitFor();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    const form = page.getByRole('form', { name: 'Add bookmark' });
    await form.getByLabel('Address').fill('example.org/cherry');
    await form.getByLabel('Title').fill('Cherry');
    await form.getByLabel('Comment').fill('Kept too');
    await form.getByRole('button', { name: 'Save', exact: true }).click();
    await later.click();
    await page.getByText('It will be saved when you are online').waitFor();
    await form.waitFor({ state: 'detached' });

    await browser.context.setOffline(false);
    await shows(page).toEqual(['Cherry', 'Bicycle, edited', 'Apple pie']);
    await page.getByText('3 of 10,000').waitFor();
    await page.getByText('are searched').waitFor({ state: 'detached' });
    expect(await call(browser, '/bookmarks/search', { query: 'Kept too' })).toMatchObject({ total: 1 });
    expect(browser.faults).toEqual([]);
  });

  browserTest('if the total cannot be read, the list can still read further pages', async () => {
    const browser = await browsers.signedIn(service);
    const bookmarks = Array.from({ length: 400 }, (_, at) => ({
      url: `https://example.org/${at}`,
      title: `Number ${at}`,
    }));
    await call(browser, '/import', { bookmarks });
    const page = await browser.open();
    await page.getByText('400 of 10,000').waitFor();
    await untilFollowing(service);
    for (const loaded of [150, 250]) {
      await page.mouse.wheel(0, 100_000);
      await expect
        .poll(() => page.evaluate(() => document.querySelector<HTMLElement>('.rows')!.offsetHeight))
        .toBe(loaded * ROW_HEIGHT);
    }
    // The test deletes a bookmark that the page has not read, so only the service knows the new total.
    const refused = page.waitForResponse((response) => response.status() === 400);
    const body = { error: 'per_page: is unheard of', code: 'VALIDATION_ERROR' };
    await failAt(page, '/bookmarks/search', 1, { status: 400, json: body });
    const oldest = { sort: 'oldest', per_page: 1 };
    const found = await call<{ bookmarks: { id: number }[] }>(browser, '/bookmarks/search', oldest);
    await call(browser, '/bookmarks/delete', { id: found.bookmarks[0]!.id });
    await refused;
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, 100_000);
        return titlesOf(page);
      })
      .toContain('Number 2');
  });

  browserTest('a request is repeated after a 503', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'There');
    const page = await browser.openTab();
    await failAt(page, '/bookmarks/search', 1, failure(503, 'UNAVAILABLE', 1));
    await Promise.all([page.getByText('The service is busy').waitFor(), page.goto(service.origin)]);
    await shows(page).toEqual(['There']);
    await page.getByText('The service is busy').waitFor({ state: 'hidden' });
  });

  browserTest('after a 429, the page says when it will continue, and then continues', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'There');
    const page = await browser.open();
    await shows(page).toEqual(['There']);
    await failAt(page, '/bookmarks/edit', 1, failure(429, 'RATE_LIMITED', 1));
    await rowOf(page, 'There').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Title').fill('Patient');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/The page continues at \d/).waitFor();
    await shows(page).toEqual(['Patient']);
  });

  browserTest('if a deletion is refused, the bookmark appears again, and the page says why', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Stays');
    const page = await browser.open();
    await failAt(page, '/bookmarks/delete', 9, failure(500, 'INTERNAL_ERROR', 1));
    await rowOf(page, 'Stays').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No bookmarks yet').waitFor();
    await page.getByText('The bookmarks were not deleted').waitFor();
    await shows(page).toEqual(['Stays']);
  });

  browserTest('a full account is explained, and the input is kept', async () => {
    const browser = await browsers.signedIn(service);
    const { id } = await call(browser, '/account/get');
    await fill(service.database.url, { id }, 10_000);
    const page = await browser.open();
    await page.getByText('10,000 of 10,000').waitFor();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('https://example.org/one-more');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Your account is full').waitFor();
    expect(await page.getByLabel('Address').inputValue()).toBe('https://example.org/one-more');
  });

  browserTest('after the session has ended, Back shows no bookmarks', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Private');
    const page = await browser.open();
    await shows(page).toEqual(['Private']);
    await page.goto(`${service.origin}/openapi.json`);
    await call(browser, '/logout');
    await page.goBack();
    await page.getByLabel('Invite code').waitFor();
  });

  browserTest('a title of 2,048 letters without a space does not widen the page', async () => {
    const browser = await browsers.signedIn(service, { width: 320, height: 640 });
    await add(browser, 'W'.repeat(2_048), { comment: 'c'.repeat(10_000), tags: ['t'.repeat(255)] });
    const page = await browser.open();
    await page.locator('.rows > li').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.getByRole('button', { name: /^Delete/ }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  });
});
