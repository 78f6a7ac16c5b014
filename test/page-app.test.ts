import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserTest, titlesOf, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// Tests the page as an app: its manifest, its service worker, and its use without a network.

const service = useService();
const browsers = useBrowser();

/** Reloads the page, and waits until its service worker controls it. */
async function openControlled(page: Page): Promise<void> {
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
  await page.reload();
  await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
}

test('the manifest has icons of the stated sizes, and a share target', async () => {
  const html = await (await fetch(service.origin)).text();
  expect(html).toContain('<link rel="manifest" href="/manifest.webmanifest">');
  const response = await fetch(`${service.origin}/manifest.webmanifest`);
  expect(response.headers.get('content-type')).toBe('application/manifest+json');
  const manifest = (await response.json()) as {
    icons: { src: string; sizes: string }[];
    share_target: object;
  };
  expect(manifest.share_target).toMatchObject({ action: '/save', method: 'GET' });
  const [touchIcon] = /\/assets\/icon-180\.png/.exec(html)!;
  for (const { src, sizes } of [...manifest.icons, { src: touchIcon, sizes: '180x180' }]) {
    const png = Buffer.from(await (await fetch(service.origin + src)).arrayBuffer());
    expect(`${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`).toBe(sizes);
  }
});

test('the script of the service worker is requested each time, and has the security policy of the page', async () => {
  const response = await fetch(`${service.origin}/service-worker.js`);
  expect(response.headers.get('cache-control')).toBe('no-cache');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
});

browserTest(
  'without a network, the page shows the last bookmarks, and later sends each new one once',
  async () => {
    const browser = await browsers.signedIn(service, { isFresh: true });
    await browser.post('/web/api/v1/bookmarks/add', { url: 'https://example.org/one', title: 'One' });
    const page = await browser.open();
    await expect.poll(() => titlesOf(page)).toEqual(['One']);
    await openControlled(page);
    await expect.poll(() => page.evaluate(() => localStorage.getItem('offline'))).toContain('One');
    // A browser may say that it is online although it cannot reach the service.
    await page.addInitScript(() => Object.defineProperty(Navigator.prototype, 'onLine', { value: true }));
    await browser.context.setOffline(true);
    await page.reload();
    await page.getByText('You are offline').waitFor();
    expect(await page.locator('.items .title').allTextContents()).toEqual(['One']);
    await page.getByLabel('Address').fill('example.org/two');
    await page.getByLabel('Title').fill('Two');
    await page.getByRole('button', { name: 'Save when online' }).click();
    await page.getByText('waiting to be saved').waitFor();
    expect(await page.locator('.items .title').allTextContents()).toEqual(['Two', 'One']);
    await browser.context.setOffline(false);
    await expect.poll(() => titlesOf(page)).toEqual(['Two', 'One']);
    await expect
      .poll(() => page.evaluate(() => JSON.parse(localStorage.getItem('offline')!).waiting))
      .toEqual([]);
    expect(await browser.post('/web/api/v1/bookmarks/search')).toMatchObject({ total: 2 });
    // The service worker stores only files that are the same for all users, and no response of the API.
    const kept = await page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return requests.flat().map(({ url }) => new URL(url).pathname);
    });
    expect(kept).toContain('/save');
    expect(kept.filter((path) => path.startsWith('/web/') || path.startsWith('/api/'))).toEqual([]);
    expect(browser.faults).toEqual([]);
  },
);

browserTest('signing out deletes the bookmarks that were stored for use without a network', async () => {
  const browser = await browsers.signedIn(service);
  await browser.post('/web/api/v1/bookmarks/add', { url: 'https://example.org/one', title: 'One' });
  const page = await browser.open();
  await expect.poll(() => page.evaluate(() => localStorage.getItem('offline'))).toContain('One');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign out anyway' }).click();
  await page.getByLabel('Invite code').waitFor();
  expect(await page.evaluate(() => localStorage.getItem('offline'))).toBeNull();
});

browserTest('a bookmark added offline outlives the session, and is sent when its user signs in', async () => {
  const browser = await browsers.signedIn(service, { isFresh: true });
  const { id } = (await browser.post('/web/api/v1/account/get')) as { id: number };
  const page = await browser.open();
  await page.getByText('No bookmarks yet').waitFor();
  await openControlled(page);
  await expect.poll(() => page.evaluate(() => localStorage.getItem('offline'))).toContain(browser.email);
  await browser.context.setOffline(true);
  await page.reload();
  await page.getByLabel('Address').fill('example.org/waits');
  await page.getByRole('button', { name: 'Save when online' }).click();
  await page.getByText('waiting to be saved').waitFor();
  await service.context.database.sql`delete from tokens where user_id = ${id}`;
  await browser.context.setOffline(false);
  await page.getByLabel('Invite code').fill(await service.invite(browser.email));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect.poll(() => titlesOf(page)).toEqual(['example.org/waits']);
});

browserTest('signing in deletes what the browser stored for another user', async () => {
  const browser = await browsers.signedIn(service);
  await browser.post('/web/api/v1/bookmarks/add', { url: 'https://example.org/one', title: 'One' });
  const page = await browser.open();
  const kept = () => page.evaluate(() => localStorage.getItem('offline'));
  await expect.poll(kept).toContain('One');
  await page.close();
  await browser.post('/web/login/invite', { code: await service.invite(newEmail()) });
  const next = await browser.open('/settings');
  await next.getByRole('heading', { name: 'Settings' }).waitFor();
  expect(await next.evaluate(() => localStorage.getItem('offline'))).toBeNull();
});

browserTest('a service worker deletes the stored files of another version, and nothing else', async () => {
  const browser = await browsers.signedIn(service, { isFresh: true });
  // The page `/save` registers no service worker.
  const page = await browser.open('/save');
  await page.evaluate(async () => {
    await caches.open('page-0000000000000000');
    await caches.open('of-something-else');
  });
  await page.goto(service.origin);
  await openControlled(page);
  const names = () => page.evaluate(() => caches.keys());
  await expect.poll(async () => (await names()).includes('page-0000000000000000')).toBe(false);
  expect((await names()).filter((name) => !name.startsWith('page-'))).toEqual(['of-something-else']);
});

browserTest('an address that an app shares inside a text is filled into the form', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open(
    `/save?title=Shared&text=${encodeURIComponent('Look: https://example.org/shared')}`,
  );
  await expect.poll(() => page.getByLabel('Address').inputValue()).toBe('https://example.org/shared');
  expect(await page.getByLabel('Title').inputValue()).toBe('Shared');
});
