import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';

// Tests actions of the page on many bookmarks, and how deletions are undone.

const service = useService();
const browsers = useBrowser();

const COUNT = 1_200;

async function openWithMany(): Promise<{ browser: UserBrowser; page: Page; sent: Map<string, object[]> }> {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: COUNT }, (_, at) => ({
    url: `https://example.org/${at}`,
    tags: at % 2 === 0 ? ['even'] : ['odd'],
  }));
  await browser.post('/web/api/v1/import', { mode: 'merge', bookmarks });
  const page = await browser.open();
  /** The bodies of the requests that the page has sent, by path. */
  const sent = new Map<string, object[]>();
  page.on('request', (request) => {
    const path = new URL(request.url()).pathname.replace('/web/api/v1', '');
    if (request.method() === 'POST') sent.set(path, [...(sent.get(path) ?? []), request.postDataJSON()]);
  });
  await page.getByText('1,200 of 10,000 bookmarks').waitFor();
  await page.getByRole('checkbox', { name: 'Select “example.org/1199”' }).check();
  await page.getByRole('button', { name: 'Select all 1,200' }).click();
  await page.getByText('1,200 selected').waitFor();
  return { browser, page, sent };
}

const sizesOf = (bodies: object[] | undefined) =>
  bodies?.map((body) => ('ids' in body && Array.isArray(body.ids) ? body.ids.length : undefined));

browserTest(
  'many bookmarks are deleted and restored in few requests, and all counts are right afterwards',
  async () => {
    const { browser, page, sent } = await openWithMany();
    const side = page.getByRole('complementary', { name: 'Tags' });
    const deleteButton = page.getByRole('button', { name: 'Delete', exact: true });
    await deleteButton.click();
    await page.getByRole('dialog', { name: 'Delete 1,200 bookmarks?' }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('1,200 selected').waitFor();
    expect(sent.get('/bookmarks/delete')).toBeUndefined();

    const firstSent = Promise.withResolvers<void>();
    const isSeen = Promise.withResolvers<void>();
    let deletions = 0;
    await page.route('**/bookmarks/delete', async (route) => {
      deletions += 1;
      if (deletions === 2) {
        firstSent.resolve();
        await isSeen.promise;
      }
      await route.continue();
    });
    await deleteButton.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await firstSent.promise;
    // Between two requests, the list and its total do not change.
    await page.getByRole('dialog', { name: 'Deleting bookmarks' }).getByText('500 of 1,200').waitFor();
    await page.getByText('1,200 of 10,000 bookmarks').waitFor();
    isSeen.resolve();
    await page.getByText('Deleted 1,200 bookmarks.').waitFor();
    await page.getByText('No bookmarks yet').waitFor();
    await page.getByText('0 of 10,000 bookmarks').waitFor();
    await side.getByRole('button', { name: 'even, 0 bookmarks', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Restored.').waitFor();
    await page.getByText('1,200 of 10,000 bookmarks').waitFor();
    await side.getByRole('button', { name: 'even, 600 bookmarks', exact: true }).waitFor();
    await side.getByRole('button', { name: 'odd, 600 bookmarks', exact: true }).waitFor();
    expect(sizesOf(sent.get('/bookmarks/delete'))).toEqual([500, 500, 200]);
    expect(sizesOf(sent.get('/trash/restore'))).toEqual([500, 500, 200]);
    // The first poll, and one read of the current cursor and one poll after each of the two actions.
    expect(sent.get('/bookmarks/changes')!.length).toBeLessThanOrEqual(6);
    expect(browser.faults).toEqual([]);
  },
);

browserTest(
  'an action on many bookmarks can be stopped, says where it failed, and its done part can be undone',
  async () => {
    const { browser, page } = await openWithMany();
    const dialog = page.getByRole('dialog');
    // The second batch fails.
    const refusal = { error: 'not now', code: 'PERMISSION_DENIED' };
    let edits = 0;
    await page.route('**/bookmarks/edit', (route) => {
      edits += 1;
      return edits === 2 ? route.fulfill({ status: 403, json: refusal }) : route.continue();
    });
    await page.getByLabel('Tag', { exact: true }).fill('new');
    await page.getByRole('button', { name: 'Add tag' }).click();
    await page.getByRole('dialog', { name: 'Add the tag “new” to 1,200 bookmarks?' }).waitFor();
    await dialog.getByRole('button', { name: 'Add tag' }).click();
    await page.getByText('500 of 1,200 bookmarks done. This is not allowed: not now.').waitFor();
    await dialog.waitFor({ state: 'detached' });
    const side = page.getByRole('complementary', { name: 'Tags' });
    await side.getByRole('button', { name: 'new, 500 bookmarks', exact: true }).waitFor();

    // The user stops while the first batch is on its way.
    await page.route('**/bookmarks/delete', async (route) => {
      await page.keyboard.press('Escape');
      await route.continue();
    });
    await page.getByRole('checkbox', { name: 'Select “example.org/1199”' }).check();
    await page.getByRole('button', { name: 'Select all' }).click();
    await page.getByText('1,200 selected').waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Deleted 500 bookmarks.').waitFor();
    await page.getByText('700 of 10,000 bookmarks').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('1,200 of 10,000 bookmarks').waitFor();
    expect(browser.faults).toEqual([]);
  },
);

browserTest('undo restores neither a deletion that has failed nor one that is too old', async () => {
  const browser = await browsers.signedIn(service);
  for (const title of ['Old', 'Refused', 'New'])
    await browser.post('/web/api/v1/bookmarks/add', { url: `https://example.org/${title}`, title });
  const page = await browser.open();
  const shows = () => expect.poll(() => titlesOf(page));
  let restores = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/trash/restore')) restores += 1;
  });
  await shows().toEqual(['New', 'Refused', 'Old']);
  const remove = (title: string) => page.getByRole('button', { name: `Delete “${title}”` }).click();
  const undoClicked = Promise.withResolvers<void>();
  await page.route('**/bookmarks/delete', async (route) => {
    await undoClicked.promise;
    await route.fulfill({ status: 403, json: { error: 'not now', code: 'PERMISSION_DENIED' } });
  });
  await remove('Refused');
  await page.getByRole('button', { name: 'Undo' }).click();
  undoClicked.resolve();
  await page.getByText('The bookmarks were not deleted').waitFor();
  await shows().toEqual(['New', 'Refused', 'Old']);
  await page.unroute('**/bookmarks/delete');

  const deleted = page.waitForResponse('**/bookmarks/delete');
  await remove('Old');
  await deleted;
  await page.evaluate(() => {
    const now = Date.now() + 6 * 60_000;
    Date.now = () => now;
  });
  await page.keyboard.press('z');
  await remove('New');
  await shows().toEqual(['Refused']);
  await page.keyboard.press('z');
  await page.getByText('Restored.').waitFor();
  await shows().toEqual(['New', 'Refused']);
  expect(restores).toBe(1);
});
