import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { BookmarkExport } from '../src/domain/resources.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { makeFolder } from './support/folders.ts';
import { runDir } from './support/run.ts';
import { useService } from './support/service.ts';

// Tests of the settings, and of the bookmarklet's window, in a browser.

const service = useService();
const browsers = useBrowser();

const SAMPLES = join(import.meta.dirname, 'samples');

const call = <T>(browser: UserBrowser, path: string, body: object = {}) =>
  browser.post(`/web/api/v1${path}`, body) as Promise<T>;

async function choose(page: Page, file: string | { name: string; mimeType: string; buffer: Buffer }) {
  await page.locator('input[type=file]').setInputFiles(file);
}

const json = (name: string, content: unknown) => ({
  name,
  mimeType: 'application/json',
  buffer: Buffer.from(JSON.stringify(content)),
});

browserTest('a browser’s file is previewed and imported, and a table lists what was left out', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  await choose(page, join(SAMPLES, 'chrome.html'));
  await page.getByText('5 bookmarks in a browser’s bookmark file').waitFor();
  await page.getByText('2 entries are left out').waitFor();
  await page
    .getByRole('row', { name: /^javascript:.* not a web page$/ })
    .first()
    .waitFor();
  await page.getByText(/folders? becomes? (a )?tags?/).click();
  await page
    .getByText(/: tag .*, \d bookmarks?$/)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Download this table' }).waitFor();
  await page.getByRole('button', { name: 'Import 5 bookmarks' }).click();
  await page.getByText('5 bookmarks imported').waitFor();
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download this table' }).click();
  const table = await readFile(await (await downloading).path(), 'utf8');
  expect(table.trim().split('\r\n')).toHaveLength(3);
  expect(table).toContain(',not a web page\r\n');
  expect(await call(browser, '/bookmarks/search')).toMatchObject({ total: 5 });
  // The next preview of the file says how many of its addresses the account has.
  await page.reload();
  await choose(page, join(SAMPLES, 'chrome.html'));
  await page.getByText('You already have 5 of these addresses').waitFor();
  expect(browser.faults).toEqual([]);
});

browserTest(
  'CSV, XML and JSON are read in the browser, and a file without bookmarks is refused with a reason',
  async () => {
    const page = await (await browsers.signedIn(service)).open('/settings');
    for (const [file, what] of [
      ['raindrop.csv', 'an export from Raindrop'],
      ['pinboard.xml', 'an export from Pinboard'],
      ['linkding.json', 'an export from linkding'],
    ] as const) {
      await choose(page, join(SAMPLES, file));
      await page.getByRole('heading', { name: what }).waitFor();
    }
    const buffer = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
    await choose(page, { name: 'photo.html', mimeType: 'text/html', buffer });
    await page.getByRole('alert').getByText('This file cannot be imported').waitFor();
  },
);

/** One sample for each reader. */
const ONE_OF_EACH = [
  ...['script-in-description.html', 'pinboard.xml', 'crlf-header-lf-rows.csv', 'onetab.txt', 'omnivore.json'],
  ...['opera-custom-root.json', 'firefox-tags-folder.json', 'bookmark-service.json'],
];

browserTest('the page imports the same bookmarks as the command line', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  for (const sample of ONE_OF_EACH) {
    const file = join(SAMPLES, sample);
    const { entries, refusals } = readBookmarkFile(readFileSync(file), { foldersAsTags: true });
    await call(browser, '/import', { mode: 'replace', bookmarks: [] });
    await choose(page, file);
    await page.getByRole('button', { name: /^Import \d/ }).click();
    await page.getByRole('heading', { name: /\d bookmarks? imported$/ }).waitFor();
    const { bookmarks } = await call<BookmarkExport>(browser, '/export');
    const refused = new Set(refusals.map(({ index }) => index));
    const accepted = entries
      .filter((_, index) => !refused.has(index))
      .map(({ url, title, comment }) => ({
        ...{ url, title, comment },
      }));
    // A merge skips the later one of two entries with the same url, which only this service's own export has.
    const byUrl = new Map(accepted.toReversed().map((entry) => [entry.url, entry]));
    expect(bookmarks, sample).toMatchObject([...byUrl.values()].toReversed());
    await page.reload();
  }
});

browserTest('a replacement requires a typed word, and then replaces all bookmarks', async () => {
  const browser = await browsers.signedIn(service);
  await call(browser, '/bookmarks/add', { url: 'https://example.org/old' });
  const page = await browser.open('/settings');
  await choose(page, json('own.json', { bookmarks: [{ url: 'https://example.org/new', title: 'New' }] }));
  await page.getByLabel('Replace them all').check();
  await page.getByRole('button', { name: 'Import 1 bookmark' }).click();
  await page.getByRole('alert').getByText('Type “replace”').waitFor();
  expect(await call(browser, '/bookmarks/search')).toMatchObject({
    bookmarks: [{ url: 'https://example.org/old' }],
  });
  await page.getByLabel('This moves 1 bookmark to the trash').fill('Replace');
  await page.keyboard.press('Enter');
  await page.getByText('1 bookmark imported').waitFor();
  expect(await call(browser, '/bookmarks/search')).toMatchObject({ bookmarks: [{ title: 'New' }], total: 1 });
});

browserTest('an import beyond the limit of the plan is refused before anything is sent', async () => {
  const browser = await browsers.signedIn(service);
  await call(browser, '/bookmarks/add', { url: 'https://example.org/old' });
  const page = await browser.open('/settings');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url()));
  const entries = Array.from({ length: 10_001 }, (_, n) => ({ url: `https://example.org/${n}` }));
  await choose(page, json('many.json', { bookmarks: entries }));
  await page.getByText('You have 1 of 10,000 bookmarks, so 9,999 new ones fit.').waitFor();
  await page.getByRole('button', { name: 'Import 10,001 bookmarks' }).click();
  await page.getByRole('alert').getByText('Your plan allows 10,000. Nothing was uploaded.').waitFor();
  // The service would refuse the last two entries, because their titles are too long. Their url still counts, because
  // the first entry has the same url and is valid.
  const tooLong = { url: 'https://example.org/0', title: 'x'.repeat(3_000) };
  await choose(page, json('many.json', { bookmarks: [...entries, tooLong, tooLong] }));
  await page.getByRole('button', { name: 'Import 10,001 bookmarks' }).click();
  await page.getByRole('alert').getByText('Your plan allows 10,000. Nothing was uploaded.').waitFor();
  expect(sent.filter((url) => url.endsWith('/import'))).toEqual([]);
});

browserTest('bookmarks that the service refuses are listed with the reason', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  const good = Array.from({ length: 2_600 }, (_, n) => ({ url: `https://example.org/${n}` }));
  const bad = { url: 'https://example.org/bad', title: '=1+1'.padEnd(3_000, 'x') };
  await choose(page, json('many.json', { bookmarks: [...good, bad] }));
  await page.getByRole('button', { name: 'Import 2,600 bookmarks' }).click();
  await page.getByText('2,600 bookmarks imported').waitFor();
  await page.getByRole('cell', { name: 'https://example.org/bad' }).waitFor();
  await page.getByRole('cell', { name: /title/ }).waitFor();
});

browserTest('an import whose session ends continues after the user has signed in again', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  const bookmarks = Array.from({ length: 2_501 }, (_, n) => ({ url: `https://example.org/${n}` }));
  await choose(page, json('many.json', { bookmarks }));
  await page.getByRole('button', { name: /^Import 2,501/ }).waitFor();
  // The worker sends the file in batches of 2,500 bookmarks.
  let sent = 0;
  await page.route('**/api/v1/import', async (route) => {
    sent += 1;
    if (sent === 2) await call(browser, '/logout');
    await route.continue();
  });
  await page.getByRole('button', { name: /^Import 2,501/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in again' });
  await dialog.getByLabel('Invite code').fill(await service.invite(browser.email));
  await page.keyboard.press('Enter');
  await page.getByText('2,501 bookmarks imported').waitFor();
});

browserTest('all bookmarks are exported, as JSON, as HTML and as CSV', async () => {
  const browser = await browsers.signedIn(service);
  await call(browser, '/bookmarks/add', { url: 'https://example.org/', title: '<b> & "q"', tags: ['one'] });
  const page = await browser.open('/settings');
  const files: string[] = [];
  for (const format of ['JSON', 'HTML', 'CSV']) {
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: `Export ${format}` }).click();
    files.push(await readFile(await (await downloading).path(), 'utf8'));
    await page.getByText('1 bookmark exported.').waitFor();
  }
  expect(JSON.parse(files[0]!)).toMatchObject({ count: 1, bookmarks: [{ title: '<b> & "q"' }] });
  expect(files[1]).toContain('TAGS="one">&lt;b&gt; &amp; &quot;q&quot;</A>');
  expect(files[2]).toMatch(/^\ufeffurl,title,note,tags,created,updated_at[\s\S]*,one,/);
});

browserTest('a token is created, is shown once, works with curl, and is revoked', async () => {
  const browser = await browsers.signedIn(service, { width: 375 });
  await call(browser, '/bookmarks/add', { url: 'https://example.org/', title: 'Seen by curl' });
  const page = await browser.open('/settings');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByRole('alert').getByText('Give the token a name').waitFor();
  await page.getByLabel('Name').fill('backup');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByText('Try it with curl').click();
  const command = await page.locator('pre').innerText();
  // A long line does not widen the page.
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(widths[0]).toBeLessThanOrEqual(widths[1]!);
  const folder = makeFolder('curl', runDir());
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: folder });
  expect(JSON.parse(stdout)).toMatchObject({ bookmarks: [{ title: 'Seen by curl' }] });
  await page.reload();
  await page.getByText('backup', { exact: true }).waitFor();
  expect(await page.content()).not.toContain('bka_');
  const revoke = page.getByRole('button', { name: 'Revoke token backup' });
  await revoke.click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await revoke.click();
  await page
    .getByRole('dialog', { name: 'Revoke the token “backup”?' })
    .getByRole('button', { name: 'Revoke' })
    .click();
  await page.getByText('No tokens.').waitFor();
  const again = await promisify(execFile)('sh', ['-c', command], { cwd: folder });
  expect(JSON.parse(again.stdout)).toMatchObject({ code: 'INVALID_TOKEN' });
});

browserTest('the settings end all other sessions', async () => {
  const browser = await browsers.signedIn(service);
  const other = await browsers.signedIn(service, { email: browser.email });
  const page = await browser.open('/settings');
  await page.getByText('this session').waitFor();
  await page.getByRole('button', { name: 'Sign out all others' }).click();
  await page.getByText('1 signed out.').waitFor();
  expect(await call(other, '/user/profile')).toMatchObject({ code: 'INVALID_TOKEN' });
  expect(await call(browser, '/user/profile')).toMatchObject({ email: browser.email });
});

browserTest('the account is deleted after its e-mail address is typed', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  const field = page.getByLabel(`Type ${browser.email} to confirm`);
  await field.fill('somebody@example.org');
  await page.getByRole('button', { name: 'Delete account' }).click();
  await page.getByRole('alert').getByText('into the field to confirm').waitFor();
  expect(await call(browser, '/user/profile')).toMatchObject({ email: browser.email });
  await field.fill(browser.email);
  await page.keyboard.press('Enter');
  await page.getByLabel('Invite code').waitFor();
  expect(await call(browser, '/user/profile')).toMatchObject({ code: 'INVALID_TOKEN' });
});

browserTest('the bookmarklet’s window saves only on a click', async () => {
  const browser = await browsers.signedIn(service);
  const url = 'https://example.org/read?a=1&b=2#c';
  const page = await browser.open(
    `/save?url=${encodeURIComponent(url)}&title=${encodeURIComponent('Read “this”')}`,
  );
  expect(await page.getByLabel('Title').inputValue()).toBe('Read “this”');
  expect(await call(browser, '/bookmarks/search')).toMatchObject({ total: 0 });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect
    .poll(() => call(browser, '/bookmarks/search'))
    .toMatchObject({ bookmarks: [{ url, title: 'Read “this”' }] });
  await page.goto(service.origin);
  await expect.poll(() => titlesOf(page)).toEqual(['Read “this”']);
});

browserTest('in the bookmarklet’s window, a saved bookmark can be edited, and then undone', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/save?url=https%3A%2F%2Fexample.org%2F&title=First');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Edit bookmark' }).click();
  await page.getByLabel('Title').fill('Second');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('The bookmark is in the trash.').waitFor();
  expect(await call(browser, '/bookmarks/search')).toMatchObject({ total: 0 });
  expect(await call(browser, '/trash/list')).toMatchObject({ bookmarks: [{ title: 'Second' }] });
});

browserTest(
  'the theme and the row height are stored in the browser, and apply from the first frame on',
  async () => {
    const browser = await browsers.signedIn(service);
    await call(browser, '/bookmarks/add', { url: 'https://example.org/', comment: 'A comment' });
    const page = await browser.open('/settings');
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByLabel('Theme').selectOption('Dark');
    expect(await background()).not.toBe(light);
    await page.getByLabel('Rows', { exact: true }).selectOption('Compact: titles and tags only');
    await page.goto(service.origin);
    await page.locator('.rows > li').waitFor();
    expect(await page.getByText('A comment').isVisible()).toBe(false);
    expect(await page.evaluate(() => document.documentElement.dataset)).toEqual({
      theme: 'dark',
      rows: 'compact',
    });
    await page.goBack();
    await page.getByLabel('Theme').selectOption('Same as the system');
    expect(await background()).toBe(light);
    expect(browser.faults).toEqual([]);
  },
);

browserTest('the page is in the language of the browser, or in the one that the user chose', async () => {
  const browser = await browsers.signedIn(service, { locale: 'de-AT' });
  const created_at = '2020-03-04T12:00:00.000Z';
  await call(browser, '/bookmarks/add', { url: 'https://example.org/', title: 'Eins', created_at });
  const page = await browser.open();
  const moment = () => page.locator('.rows time').getAttribute('title');
  await page.getByText(/^1 von 10.000 Lesezeichen$/).waitFor();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('de');
  expect(await moment()).toMatch(/^\p{L}+, \d+\. \p{L}+ 2020 um \d\d:\d\d$/u);
  await page.goto(`${service.origin}/settings`);
  await page.getByRole('heading', { name: 'Darstellung' }).waitFor();
  await Promise.all([page.waitForEvent('load'), page.getByLabel('Sprache').selectOption('English')]);
  await page.getByRole('heading', { name: 'Appearance' }).waitFor();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('en');
  await page.goto(service.origin);
  await page.getByText('1 of 10,000 bookmarks').waitFor();
  expect(await moment()).toMatch(/^\w+, \w+ \d+, 2020 at \d+:\d\d\s[AP]M$/);
  // If the page is not translated into the user's language, it uses English, even for dates and numbers.
  const other = await browsers.signedIn(service, { locale: 'fr-FR' });
  await call(other, '/bookmarks/add', { url: 'https://example.org/', title: 'Un' });
  const french = await other.open();
  await french.getByText('1 of 10,000 bookmarks').waitFor();
  expect(await french.locator('.rows time').textContent()).toBe('this minute');
  expect([...browser.faults, ...other.faults]).toEqual([]);
});

browserTest('the bookmarklet opens its window with the address and the title of the page', async () => {
  const page = await (await browsers.signedIn(service)).open('/settings');
  const href = (await page.getByRole('link', { name: 'Save bookmark' }).getAttribute('href'))!;
  const opened: string[] = [];
  const run = new Function(
    'open',
    'location',
    'document',
    'encodeURIComponent',
    href.slice('javascript:'.length),
  );
  run(
    (address: string) => opened.push(address),
    { href: 'https://a.example/?x=1' },
    { title: 'A & b' },
    encodeURIComponent,
  );
  expect(opened).toEqual([`${service.origin}/save?url=https%3A%2F%2Fa.example%2F%3Fx%3D1&title=A%20%26%20b`]);
});
