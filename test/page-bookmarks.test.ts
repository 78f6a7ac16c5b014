import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { fill } from './support/fill.ts';
import { useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// Uses a browser to test the page that shows the bookmarks.

const service = useService();
const browsers = useBrowser();

const shows = (page: Page) => expect.poll(() => titlesOf(page));

const add = (
  browser: { post(path: string, body: unknown): Promise<unknown> },
  title: string,
  more: object = {},
) =>
  browser.post('/web/api/v1/bookmarks/add', {
    url: `https://example.org/${encodeURIComponent(title)}`,
    title,
    ...more,
  }) as Promise<{ id: number }>;

const rowOf = (page: Page, title: string) =>
  page.locator('.rows > li').filter({ has: page.locator('.title', { hasText: title }) });

describe('signing in', () => {
  browserTest('the first load by a visitor sends no request that fails', async () => {
    const visitor = await browsers.visitor(service, { isFresh: true });
    const refused: string[] = [];
    visitor.context.on('response', (response) => {
      if (response.status() >= 400) refused.push(response.url());
    });
    const page = await visitor.open();
    await page.getByLabel('Invite code').waitFor();
    expect(refused).toEqual([]);
  });

  browserTest('works with an invite code in upper or lower case, and explains a wrong code', async () => {
    const visitor = await browsers.visitor(service);
    const page = await visitor.open();
    const code = await service.invite(newEmail());
    await page.getByLabel('Invite code').fill('nonsense');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('unknown').waitFor();
    await page.getByLabel('Invite code').fill(` ${code.toLowerCase()} `);
    await page.keyboard.press('Enter');
    await page.getByText('No bookmarks yet').waitFor();
    expect(visitor.faults).toEqual([]);
  });

  browserTest('works with a link, once, on the user’s own machine', async () => {
    const code = await service.invite(newEmail());
    const visitor = await browsers.visitor(service);
    const page = await visitor.open(`/#code=${code}`);
    await page.getByText('No bookmarks yet').waitFor();
    expect(page.url()).toBe(`${service.origin}/`);
    await visitor.context.clearCookies();
    await page.goto(`${service.origin}/?second#code=${code}`);
    await page.getByRole('alert').getByText('This link was already used').waitFor();
    expect(await page.getByLabel('Invite code').inputValue()).toBe('');
    // Only the fragment of the address changes, so the browser does not load the page again.
    await page.goto(`${service.origin}/?second#code=${await service.invite(newEmail())}`);
    await page.getByText('No bookmarks yet').waitFor();
    // A link with the code of another user does not sign the user out.
    const foreign = await service.invite(newEmail());
    await page.goto(`${service.origin}/?again#code=${foreign}`);
    await page.getByText('No bookmarks yet').waitFor();
    expect(page.url()).not.toContain(foreign);
    await service.post('/auth/invite', { code: foreign }).then(({ status }) => expect(status).toBe(200));
  });

  browserTest('signing out ends the session, in all tabs of the browser', async () => {
    const browser = await browsers.signedIn(service);
    const [page, other] = [await browser.open(), await browser.open()];
    await other.getByText('No bookmarks yet').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign out anyway' }).click();
    await page.getByLabel('Invite code').waitFor();
    await other.getByLabel('Invite code').waitFor();
    expect(await browser.post('/web/api/v1/user/profile')).toMatchObject({ code: 'INVALID_TOKEN' });
  });

  browserTest('signing out reports a failure, and works in a session that has ended', async () => {
    const browser = await browsers.signedIn(service);
    // The page with the settings has no poll, so it does not notice the end of the session.
    const page = await browser.open('/settings');
    const signOut = page.getByRole('banner').getByRole('button', { name: 'Sign out' });
    await page.route('**/web/log*/**', (route) => route.abort());
    await page.route('**/web/logout', (route) => route.abort());
    await signOut.click();
    await page.getByText('The service could not be reached').waitFor();
    await page.unroute('**/web/logout');
    await browser.post('/web/api/v1/logout');
    await signOut.click();
    await page.getByLabel('Invite code').waitFor();
  });
});

describe('the list', () => {
  browserTest('shows the newest first, with host, date, tags and a link that sends no referrer', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Older');
    await add(browser, 'Newer', { tags: ['one', 'two'], comment: 'To remember' });
    const page = await browser.open();
    await shows(page).toEqual(['Newer', 'Older']);
    const row = rowOf(page, 'Newer');
    expect(await row.innerText()).toMatch(
      /example\.org[\s\S]*this minute[\s\S]*To remember[\s\S]*one[\s\S]*two/,
    );
    expect(await row.locator('time').getAttribute('title')).toMatch(/\d{4}/);
    const link = row.getByRole('link', { name: 'Newer' });
    expect(await link.getAttribute('href')).toBe('https://example.org/Newer');
    expect(await link.getAttribute('rel')).toBe('noreferrer noopener');
    await page.getByText('2 of 10,000 bookmarks').waitFor();
  });

  browserTest('reads more bookmarks as the user scrolls, and has elements for only a few rows', async () => {
    const browser = await browsers.signedIn(service);
    const { id } = (await browser.post('/web/api/v1/account/get')) as { id: number };
    await fill(service.database.url, { id }, 730);
    const page = await browser.open();
    await page.getByText('730 of 10,000').waitFor();
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, 8_000);
        return (await titlesOf(page)).at(-1);
      })
      .toBe('Bookmark 1');
    // The page has elements only for the visible rows and for a few around them.
    expect(await page.locator('.rows > li').count()).toBeLessThan(60);
    await page.getByText('End of the list.').waitFor();
    const last = page.locator('.rows > li').last();
    expect(await last.getAttribute('aria-posinset')).toBe('730');
    expect(await last.getAttribute('aria-setsize')).toBe('730');
  });
});

describe('adding, editing, deleting', () => {
  browserTest('a bookmark is added with several tags, one of them a suggestion', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Before', { tags: ['reading'] });
    const page = await browser.open();
    await shows(page).toEqual(['Before']);
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('nodejs.org/en');
    await page.getByLabel('Title').fill('Node');
    await page.getByRole('combobox', { name: 'Tags' }).fill('rea');
    await page.getByRole('option', { name: 'reading' }).click();
    await page.keyboard.type('new one,');
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Node', 'Before']);
    const { bookmarks } = (await browser.post('/web/api/v1/bookmarks/search')) as { bookmarks: unknown[] };
    expect(bookmarks[0]).toMatchObject({
      url: 'https://nodejs.org/en',
      title: 'Node',
      tags: [{ name: 'new one' }, { name: 'reading' }],
    });
    expect(browser.faults).toEqual([]);
  });

  browserTest('Enter chooses the suggestion that a key or the pointer has highlighted', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Before', { tags: ['reading', 'recipes'] });
    const page = await browser.open();
    await shows(page).toEqual(['Before']);
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.fill('re');
    await page.getByRole('option', { name: 'recipes' }).hover();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove tag recipes' }).waitFor();
    await tags.fill('re');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove tag reading' }).waitFor();
    expect(await page.locator('.tag-box .chip').allTextContents()).toEqual(['recipes', 'reading']);
  });

  browserTest('the up arrow highlights the last suggestion first', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Before', { tags: ['reading', 'recipes', 'relatives'] });
    const page = await browser.open();
    await shows(page).toEqual(['Before']);
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('combobox', { name: 'Tags' }).fill('re');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove tag relatives' }).waitFor();
  });

  browserTest('an address that is not a web address is refused, and the input is kept', async () => {
    const browser = await browsers.signedIn(service);
    const page = await browser.open();
    await page.getByRole('button', { name: 'Add bookmark' }).click();
    await page.getByLabel('Address').fill('ftp://example.org');
    await page.getByLabel('Comment').fill('kept');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('This is not a web address').waitFor();
    const address = page.getByRole('textbox', { name: 'Address', description: /^This is not a web address/ });
    expect(await address.getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Comment').inputValue()).toBe('kept');
    // Escape asks before it closes a form with input.
    const question = page.getByRole('dialog', { name: 'Discard what you have typed?' });
    await address.press('Escape');
    await question.getByRole('button', { name: 'Cancel' }).click();
    expect(await page.getByLabel('Comment').inputValue()).toBe('kept');
    await address.press('Escape');
    await question.getByRole('button', { name: 'Discard' }).click();
    await address.waitFor({ state: 'detached' });
  });

  browserTest('the form says that an address is saved already, and offers to edit it', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Known');
    const page = await browser.open();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('https://EXAMPLE.org/Known');
    await page.getByText('You already saved “Known”').waitFor();
    await page.getByRole('button', { name: 'Edit it' }).click();
    expect(await page.getByLabel('Title').inputValue()).toBe('Known');
  });

  browserTest('a bookmark is edited in its row, and only changed fields are sent', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Draft', { comment: 'as it is', tags: ['a'] });
    const page = await browser.open();
    await rowOf(page, 'Draft').getByRole('button', { name: 'Edit “Draft”' }).click();
    const sent = page.waitForRequest('**/bookmarks/edit');
    await page.getByLabel('Title').fill('Final');
    await page.keyboard.press('Control+Enter');
    expect(Object.keys((await sent).postDataJSON())).toEqual(['id', 'if_updated_at', 'title']);
    await shows(page).toEqual(['Final']);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Final');
  });

  browserTest('undo restores a deleted bookmark from the trash', async () => {
    const browser = await browsers.signedIn(service);
    const { id } = await add(browser, 'Gone', { tags: ['kept'] });
    await add(browser, 'Here');
    const page = await browser.open();
    await shows(page).toEqual(['Here', 'Gone']);
    const sent = page.waitForRequest('**/bookmarks/delete');
    await rowOf(page, 'Gone').getByRole('button', { name: 'Delete' }).click();
    expect((await sent).postDataJSON()).toEqual({ ids: [id], trash: true });
    await shows(page).toEqual(['Here']);
    await page.getByText('1 of 10,000').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await shows(page).toEqual(['Here', 'Gone']);
    await page.getByText('2 of 10,000').waitFor();
    await rowOf(page, 'Gone').getByText('kept').waitFor();
    expect(browser.faults).toEqual([]);
  });

  browserTest('a link that is dropped on the page opens the form to add it, a text does not', async () => {
    const browser = await browsers.signedIn(service);
    const page = await browser.open();
    await page.getByText('No bookmarks yet').waitFor();
    const drop = (type: string, data: string) =>
      page.evaluate(
        ([dataType, content]) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.setData(dataType!, content!);
          document.body.dispatchEvent(
            new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }),
          );
        },
        [type, data],
      );
    await drop('text/plain', 'https://example.org/text');
    await drop('text/uri-list', 'javascript:alert(1)');
    expect(await page.getByLabel('Address').count()).toBe(0);
    await drop('text/uri-list', '# a comment\r\nhttps://example.org/dropped\r\n');
    expect(await page.getByLabel('Address').inputValue()).toBe('https://example.org/dropped');
    expect(browser.faults).toEqual([]);
  });

  browserTest('undo waits for a deletion that the service has not confirmed yet', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Quick');
    const page = await browser.open();
    await shows(page).toEqual(['Quick']);
    const undoClicked = Promise.withResolvers<void>();
    await page.route('**/bookmarks/delete', async (route) => {
      await undoClicked.promise;
      await route.continue();
    });
    await rowOf(page, 'Quick').getByRole('button', { name: 'Delete' }).click();
    await shows(page).toEqual([]);
    await page.getByRole('button', { name: 'Undo' }).click();
    undoClicked.resolve();
    await page.getByText('Restored.').waitFor();
    await shows(page).toEqual(['Quick']);
  });

  browserTest('after a reload, the same user can still undo deletions', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'First');
    await add(browser, 'Second');
    const page = await browser.open();
    for (const title of ['First', 'Second']) {
      const done = page.waitForResponse('**/bookmarks/delete');
      await rowOf(page, title).getByRole('button', { name: 'Delete' }).click();
      await done;
    }
    await page.getByText('No bookmarks yet').waitFor();
    await page.reload();
    await page.getByText('No bookmarks yet').waitFor();
    await page.getByText('Deleted “Second”').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await shows(page).toEqual(['Second']);
    await page.keyboard.press('z');
    await shows(page).toEqual(['Second', 'First']);
    expect(Object.keys(await page.evaluate(() => ({ ...sessionStorage })))).toEqual([
      `deleted:${browser.email}`,
    ]);
  });

  browserTest('undo says how many bookmarks the trash no longer had', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Emptied');
    const page = await browser.open();
    const done = page.waitForResponse('**/bookmarks/delete');
    await rowOf(page, 'Emptied').getByRole('button', { name: 'Delete' }).click();
    await done;
    await browser.post('/web/api/v1/trash/delete', { all: true });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('0 of 1 bookmark restored').waitFor();
  });

  browserTest('a deletion is sent even if the user leaves the page at once', async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Gone');
    const page = await browser.open();
    await rowOf(page, 'Gone').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No bookmarks yet').waitFor();
    await page.goto('about:blank');
    await expect.poll(() => browser.post('/web/api/v1/bookmarks/search')).toMatchObject({ total: 0 });
  });
});

describe('the trash', () => {
  const entryOf = (page: Page, title: string) => page.getByRole('dialog').locator('li', { hasText: title });
  const deletedTitles = (page: Page) => page.locator('dialog li .title').allTextContents();

  async function openWith(titles: string[]): Promise<{ browser: UserBrowser; page: Page }> {
    const browser = await browsers.signedIn(service);
    for (const title of titles) {
      const { id } = await add(browser, title, { tags: ['old'] });
      await browser.post('/web/api/v1/bookmarks/delete', { id, trash: true });
    }
    const page = await browser.open();
    await page.getByText('No bookmarks yet').waitFor();
    await page.getByRole('button', { name: 'Trash' }).click();
    return { browser, page };
  }

  browserTest('shows the last deleted bookmark first, and restores bookmarks into the list', async () => {
    const { browser, page } = await openWith(['One', 'Two', 'Three']);
    await expect.poll(() => deletedTitles(page)).toEqual(['Three', 'Two', 'One']);
    await page.getByText('Deleted bookmarks stay here for 30 days').waitFor();
    await entryOf(page, 'Two').getByRole('button', { name: 'Restore “Two”' }).click();
    await expect.poll(() => deletedTitles(page)).toEqual(['Three', 'One']);
    await page.getByRole('button', { name: 'Restore all 2 shown' }).click();
    await page.getByText('The trash is empty.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await shows(page).toEqual(['Three', 'Two', 'One']);
    expect(browser.faults).toEqual([]);
  });

  browserTest('deletes one bookmark or all of them permanently, after a question', async () => {
    const { browser, page } = await openWith(['One', 'Two', 'Three']);
    await entryOf(page, 'Two').getByRole('button', { name: 'Delete “Two” for good' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await expect.poll(() => deletedTitles(page)).toEqual(['Three', 'Two', 'One']);
    await entryOf(page, 'Two').getByRole('button', { name: 'Delete “Two” for good' }).click();
    await page.getByRole('button', { name: 'Delete for good', exact: true }).click();
    await expect.poll(() => deletedTitles(page)).toEqual(['Three', 'One']);
    await page.getByRole('button', { name: 'Empty the trash' }).click();
    await page.getByText('Delete 2 bookmarks for good?').waitFor();
    await page.getByRole('button', { name: 'Empty the trash' }).last().click();
    await page.getByText('2 bookmarks deleted for good.').waitFor();
    await page.getByText('The trash is empty.').waitFor();
    expect(await browser.post('/web/api/v1/trash/list')).toMatchObject({ bookmarks: [] });
    expect(browser.faults).toEqual([]);
  });

  browserTest('is read page by page', async () => {
    const { browser, page } = await openWith(['Last']);
    const bookmarks = Array.from({ length: 250 }, (_, at) => ({
      url: `https://example.org/${at}`,
      title: `${at}`,
    }));
    await browser.post('/web/api/v1/import', { mode: 'merge', bookmarks });
    await browser.post('/web/api/v1/import', { mode: 'replace', bookmarks: [] });
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Trash' }).click();
    await expect.poll(() => deletedTitles(page).then(({ length }) => length)).toBe(100);
    const [first] = await deletedTitles(page);
    await page.getByRole('button', { name: 'Restore all 100 shown' }).click();
    // The next page takes the place of the restored bookmarks.
    await expect.poll(() => deletedTitles(page)).not.toContain(first);
    expect(await deletedTitles(page)).toHaveLength(100);
    await page.getByRole('button', { name: 'Load more' }).click();
    await expect.poll(() => deletedTitles(page).then(({ length }) => length)).toBe(151);
    await page.getByRole('button', { name: 'Empty the trash' }).click();
    await page.getByText('Delete 151 bookmarks for good?').waitFor();
  });

  browserTest('says that it cannot be read, and is read again when the user asks', async () => {
    const browser = await browsers.signedIn(service);
    const page = await browser.open();
    const refusal = { error: 'limit: is unheard of', code: 'VALIDATION_ERROR' };
    await page.route('**/trash/list', (route) => route.fulfill({ status: 400, json: refusal }), { times: 1 });
    await page.getByRole('button', { name: 'Trash' }).click();
    await page.getByRole('dialog').getByText('could not be loaded').waitFor();
    await page.getByRole('button', { name: 'Load more' }).click();
    await page.getByText('The trash is empty.').waitFor();
  });

  browserTest('says how many bookmarks were restored if another device has emptied it', async () => {
    const { browser, page } = await openWith(['One', 'Two']);
    await expect.poll(() => deletedTitles(page)).toEqual(['Two', 'One']);
    await browser.post('/web/api/v1/trash/delete', { all: true });
    await page.getByRole('button', { name: 'Restore all 2 shown' }).click();
    await page.getByText('0 of 2 bookmarks restored').waitFor();
  });

  browserTest('says why a bookmark cannot be restored, and keeps it', async () => {
    const { browser, page } = await openWith(['Stays']);
    const { id } = (await browser.post('/web/api/v1/account/get')) as { id: number };
    await fill(service.database.url, { id }, 10_000);
    await entryOf(page, 'Stays').getByRole('button', { name: 'Restore “Stays”' }).click();
    await page.getByText('Your account is full').waitFor();
    await expect.poll(() => deletedTitles(page)).toEqual(['Stays']);
  });
});
