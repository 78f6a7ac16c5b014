import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { browserTest, titlesOf, useBrowser } from './support/browser.ts';
import { fill } from './support/fill.ts';
import { useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// The page of the bookmarks, as people use it.

const service = useService();
const browsers = useBrowser();

const shows = (page: Page) => expect.poll(() => titlesOf(page));

const add = (
  reader: { post(path: string, body: unknown): Promise<unknown> },
  title: string,
  more: object = {},
) =>
  reader.post('/web/api/v1/bookmarks/add', {
    url: `https://example.org/${encodeURIComponent(title)}`,
    title,
    ...more,
  }) as Promise<{ id: number }>;

const rowOf = (page: Page, title: string) =>
  page.locator('.rows > li').filter({ has: page.locator('.title', { hasText: title }) });

describe('signing in', () => {
  browserTest('a visitor’s first load fails at nothing', async () => {
    const visitor = await browsers.visitor(service);
    const refused: string[] = [];
    visitor.context.on('response', (response) => {
      if (response.status() >= 400) refused.push(response.url());
    });
    const page = await visitor.open();
    await page.getByLabel('Invite code').waitFor();
    expect(refused).toEqual([]);
  });

  browserTest('by an invite code, typed in any case; a wrong one is explained', async () => {
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

  browserTest('by a link, once, on the own machine', async () => {
    const code = await service.invite(newEmail());
    const first = await browsers.visitor(service);
    const page = await first.open(`/#code=${code}`);
    await page.getByText('No bookmarks yet').waitFor();
    expect(page.url()).toBe(`${service.origin}/`);
    const second = await browsers.visitor(service);
    const other = await second.open(`/#code=${code}`);
    await other.getByLabel('Invite code').waitFor();
    // In the same tab the browser loads nothing anew.
    await other.goto(`${service.origin}/#code=${await service.invite(newEmail())}`);
    await other.getByText('No bookmarks yet').waitFor();
    // Who is signed in stays so, whatever link is followed.
    const foreign = await service.invite(newEmail());
    await page.goto(`${service.origin}/?again#code=${foreign}`);
    await page.getByText('No bookmarks yet').waitFor();
    expect(page.url()).not.toContain(foreign);
    await service.post('/auth/invite', { code: foreign }).then(({ status }) => expect(status).toBe(200));
  });

  browserTest('signing out ends the session, in all tabs of the browser', async () => {
    const reader = await browsers.reader(service);
    const [page, other] = [await reader.open(), await reader.open()];
    await other.getByText('No bookmarks yet').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign out anyway' }).click();
    await page.getByLabel('Invite code').waitFor();
    await other.getByLabel('Invite code').waitFor();
    expect(await reader.post('/web/api/v1/user/profile')).toMatchObject({ code: 'INVALID_TOKEN' });
  });
});

describe('the list', () => {
  browserTest('shows the newest first, with host, date and tags, and a link that tells nobody', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Older');
    await add(reader, 'Newer', { tags: ['one', 'two'], comment: 'To remember' });
    const page = await reader.open();
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

  browserTest('goes on as one scrolls, to the last one, with few rows at a time', async () => {
    const reader = await browsers.reader(service);
    const { id } = (await reader.post('/web/api/v1/user/profile')) as { id: number };
    await fill(service.database.url, { id }, 730);
    const page = await reader.open();
    await page.getByText('730 of 10,000').waitFor();
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, 8_000);
        return (await titlesOf(page)).at(-1);
      })
      .toBe('Bookmark 1');
    expect(await page.locator('.rows > li').count()).toBeLessThan(60);
    await page.getByText('End of the list.').waitFor();
    const last = page.locator('.rows > li').last();
    expect(await last.getAttribute('aria-posinset')).toBe('730');
  });
});

describe('adding, editing, deleting', () => {
  browserTest('adds by url, with tags completed from one’s own', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Before', { tags: ['reading'] });
    const page = await reader.open();
    await shows(page).toEqual(['Before']);
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('nodejs.org/en');
    await page.getByLabel('Title').fill('Node');
    await page.getByRole('combobox', { name: 'Tags' }).fill('rea');
    await page.getByRole('option', { name: 'reading' }).click();
    await page.keyboard.type('new one,');
    await page.getByRole('button', { name: 'Save' }).click();
    await shows(page).toEqual(['Node', 'Before']);
    const { bookmarks } = (await reader.post('/web/api/v1/bookmarks/search')) as { bookmarks: unknown[] };
    expect(bookmarks[0]).toMatchObject({
      url: 'https://nodejs.org/en',
      title: 'Node',
      tags: [{ name: 'new one' }, { name: 'reading' }],
    });
    expect(reader.faults).toEqual([]);
  });

  browserTest('Enter takes the suggestion that is highlighted, by a key or by the pointer', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Before', { tags: ['reading', 'recipes'] });
    const page = await reader.open();
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

  browserTest('says which address is no web address, and keeps what was typed', async () => {
    const reader = await browsers.reader(service);
    const page = await reader.open();
    await page.getByRole('button', { name: 'Add bookmark' }).click();
    await page.getByLabel('Address').fill('ftp://example.org');
    await page.getByLabel('Comment').fill('kept');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('This is not a web address').waitFor();
    expect(await page.getByLabel('Comment').inputValue()).toBe('kept');
  });

  browserTest('says that an address is saved already, and offers that bookmark', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Known');
    const page = await reader.open();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Address').fill('https://EXAMPLE.org/Known');
    await page.getByText('You already saved “Known”').waitFor();
    await page.getByRole('button', { name: 'Edit it' }).click();
    expect(await page.getByLabel('Title').inputValue()).toBe('Known');
  });

  browserTest('edits in place, and sends only what was changed', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Draft', { comment: 'as it is', tags: ['a'] });
    const page = await reader.open();
    await rowOf(page, 'Draft').getByRole('button', { name: 'Edit “Draft”' }).click();
    const sent = page.waitForRequest('**/bookmarks/edit');
    await page.getByLabel('Title').fill('Final');
    await page.keyboard.press('Control+Enter');
    expect(Object.keys((await sent).postDataJSON())).toEqual(['id', 'title']);
    await shows(page).toEqual(['Final']);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Final');
  });

  browserTest('deletes with undo: nothing is sent before its time', async () => {
    const reader = await browsers.reader(service);
    const { id } = await add(reader, 'Gone');
    await add(reader, 'Here');
    const page = await reader.open();
    await shows(page).toEqual(['Here', 'Gone']);
    await rowOf(page, 'Gone').getByRole('button', { name: 'Delete' }).click();
    await shows(page).toEqual(['Here']);
    await page.getByText('1 of 10,000').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await shows(page).toEqual(['Here', 'Gone']);
    await rowOf(page, 'Gone').getByRole('button', { name: 'Delete' }).click();
    const sent = await page.waitForRequest('**/bookmarks/delete');
    expect(sent.postDataJSON()).toEqual({ ids: [id] });
    await page.getByText('Deleted “Gone”').waitFor({ state: 'detached' });
    await shows(page).toEqual(['Here']);
  });

  browserTest('a page that goes sends its deletions before it goes', async () => {
    const reader = await browsers.reader(service);
    await add(reader, 'Gone');
    const page = await reader.open();
    await rowOf(page, 'Gone').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No bookmarks yet').waitFor();
    await page.goto('about:blank');
    await expect.poll(() => reader.post('/web/api/v1/bookmarks/search')).toMatchObject({ total: 0 });
  });
});
