import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';

// Tests of the search field and of the tags, in a browser.

const service = useService();
const browsers = useBrowser();

const shows = (page: Page) => expect.poll(() => titlesOf(page));

const add = (browser: UserBrowser, title: string, more: object = {}) =>
  browser.post('/web/api/v1/bookmarks/add', {
    url: `https://${title.split(' ')[0]!.toLowerCase()}.example.org/`,
    title,
    ...more,
  });

/** Signs in a new user with three bookmarks, and opens the list. */
async function openThree(): Promise<{ browser: UserBrowser; page: Page }> {
  const browser = await browsers.signedIn(service);
  await add(browser, 'Alpha', { tags: ['greek', 'to read'] });
  await add(browser, 'Beta', { tags: ['greek'], comment: 'about ALPHA' });
  await add(browser, 'Gimel');
  const page = await browser.open();
  await shows(page).toEqual(['Gimel', 'Beta', 'Alpha']);
  return { browser, page };
}

browserTest('the page searches while the user types, and puts the search into its address', async () => {
  const { page } = await openThree();
  await page.keyboard.press('/');
  await page.keyboard.type('alpha');
  await shows(page).toEqual(['Beta', 'Alpha']);
  await page.getByText('2 bookmarks found').waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('alpha');
  await page.getByRole('button', { name: 'Clear the search' }).click();
  await shows(page).toEqual(['Gimel', 'Beta', 'Alpha']);
});

browserTest('Try again repeats the read that failed, even if more pages follow', async () => {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: 60 }, (_, n) => ({
    url: `https://example.org/${n}`,
    title: `Page ${100 + n}`,
  }));
  await browser.post('/web/api/v1/import', { bookmarks });
  const page = await browser.open();
  await page.getByLabel('Order').selectOption('By title');
  await expect.poll(async () => (await titlesOf(page))[0]).toBe('Page 100');
  let isDown = true;
  // The page shows a 400 at once. After a 5xx, the client would first send the request again several times.
  const fault = { status: 400, json: { error: 'refused', code: 'VALIDATION_ERROR' } };
  await page.route('**/bookmarks/search', (route) => (isDown ? route.fulfill(fault) : route.continue()));
  await add(browser, 'A new one');
  const again = page.getByRole('button', { name: 'Try again' });
  await again.waitFor();
  isDown = false;
  await again.click();
  await page.getByText('61 of 10,000 bookmarks').waitFor();
  await page.keyboard.press('Control+Home');
  await expect.poll(async () => (await titlesOf(page))[0]).toBe('A new one');
});

browserTest('the list shows the last search, even if an earlier one responds later', async () => {
  const { page } = await openThree();
  // The response to the first search comes after the response to the second.
  const isSecondShown = Promise.withResolvers<void>();
  const isFirstSent = Promise.withResolvers<void>();
  const isFirstDone = Promise.withResolvers<void>();
  await page.route('**/bookmarks/search', async (route) => {
    if (route.request().postDataJSON().query !== 'alph') return route.continue();
    isFirstSent.resolve();
    await isSecondShown.promise;
    await route.continue().catch(() => {});
    isFirstDone.resolve();
  });
  const search = page.getByLabel('Search bookmarks');
  await search.fill('alph');
  await isFirstSent.promise;
  await search.fill('gimel');
  await shows(page).toEqual(['Gimel']);
  isSecondShown.resolve();
  await isFirstDone.promise;
  await page.waitForTimeout(200);
  expect(await titlesOf(page)).toEqual(['Gimel']);
});

browserTest('fast typing sends far fewer requests than keys', async () => {
  const { page } = await openThree();
  let sent = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/bookmarks/search')) sent += 1;
  });
  // A script in the page types the text, because single keys from the test arrive slowly on a busy machine.
  await page.getByLabel('Search bookmarks').evaluate((field: HTMLInputElement) => {
    for (const key of 'alpha beta gamma') {
      field.value += key;
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
    }
  });
  await page.getByText('Nothing found', { exact: true }).first().waitFor();
  expect(sent).toBeLessThan(4);
});

browserTest('a tag at the side or in a row filters the list, and Back removes the filter', async () => {
  const { page } = await openThree();
  const side = page.getByRole('complementary', { name: 'Tags' });
  await side.getByRole('button', { name: 'greek, 2 bookmarks' }).click();
  await shows(page).toEqual(['Beta', 'Alpha']);
  expect(await page.getByLabel('Search bookmarks').inputValue()).toBe('tag:greek');
  await page.goBack();
  await shows(page).toEqual(['Gimel', 'Beta', 'Alpha']);
  await page.locator('.rows').getByRole('button', { name: 'to read' }).click();
  await shows(page).toEqual(['Alpha']);
  expect(await page.getByLabel('Search bookmarks').inputValue()).toBe('tag:"to read"');
});

browserTest('site:, -tag: and is:untagged filter the list, and the order can be chosen', async () => {
  const { browser, page } = await openThree();
  const search = page.getByLabel('Search bookmarks');
  await search.fill('site:beta.example.org');
  await shows(page).toEqual(['Beta']);
  await search.fill('site:example.org -tag:"to read"');
  await shows(page).toEqual(['Gimel', 'Beta']);
  await search.fill('is:untagged');
  await shows(page).toEqual(['Gimel']);
  await search.fill('');
  const order = page.getByLabel('Order');
  await order.selectOption('Added: oldest first');
  await shows(page).toEqual(['Alpha', 'Beta', 'Gimel']);
  // A new bookmark appears at its place in each order, without another search.
  await order.selectOption('Dated: oldest first');
  await add(browser, 'Dated', { created_at: '2001-01-01T00:00:00Z' });
  await shows(page).toEqual(['Dated', 'Alpha', 'Beta', 'Gimel']);
  await order.selectOption('Added: newest first');
  await shows(page).toEqual(['Dated', 'Gimel', 'Beta', 'Alpha']);
  await order.selectOption('Dated: newest first');
  await shows(page).toEqual(['Gimel', 'Beta', 'Alpha', 'Dated']);
});

browserTest('the search field suggests operators and tags. Enter takes only a highlighted one', async () => {
  const { page } = await openThree();
  const search = page.getByRole('combobox', { name: 'Search bookmarks' });
  const options = page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');
  await page.keyboard.press('/');
  await options.filter({ hasText: 'is:untagged' }).waitFor();
  expect(await search.getAttribute('aria-expanded')).toBe('true');
  await page.keyboard.type('gre');
  await expect.poll(() => options.allTextContents()).toEqual(['tag:greek2 bookmarks']);
  // No suggestion is highlighted, so Enter searches for the word.
  await page.keyboard.press('Enter');
  await shows(page).toEqual([]);
  expect(await search.inputValue()).toBe('gre');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await search.getAttribute('aria-activedescendant')).toBe(await options.first().getAttribute('id'));
  await page.keyboard.press('Enter');
  await shows(page).toEqual(['Beta', 'Alpha']);
  expect(await search.inputValue()).toBe('tag:greek ');
  await page.keyboard.type('-t');
  await options.filter({ hasText: '-tag:Without' }).click();
  await options.filter({ hasText: '-tag:"to read"' }).click();
  await shows(page).toEqual(['Beta']);
  await search.fill('ta');
  await options.first().waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => options.count()).toBe(0);
  expect(await search.inputValue()).toBe('ta');
});

browserTest('a search highlights its words in the results, and offers the tag of that name', async () => {
  const { browser, page } = await openThree();
  await add(browser, '<b>Straße</b> to İstanbul greek', {
    url: 'https://example.org/',
    comment: 'GREEK and <i>greek</i>',
  });
  const search = page.getByLabel('Search bookmarks');
  const marks = () => page.locator('.rows mark').allTextContents();
  await search.fill('greek <b>s istanbul');
  await page.keyboard.press('Escape');
  await expect.poll(marks).toEqual([]);
  await search.fill('greek <b>s "ße</b> to"');
  await expect.poll(marks).toEqual(['<b>S', 'ße</b> to', 'greek', 'GREEK', 'greek']);
  await search.fill('greek');
  await expect.poll(marks).toEqual(['greek', 'GREEK', 'greek']);
  await page.getByRole('button', { name: '2 bookmarks tagged greek' }).click();
  await shows(page).toEqual(['Beta', 'Alpha']);
  expect(await search.inputValue()).toBe('tag:greek');
  expect(await marks()).toEqual([]);
  expect(browser.faults).toEqual([]);
});

browserTest('a result shows the text around the match, in a long comment or in the address', async () => {
  const browser = await browsers.signedIn(service, { width: 375 });
  const comment = `${'many words before '.repeat(40)}the needle, and more`;
  await add(browser, 'In the comment', { comment });
  await add(browser, 'In the address', { url: 'https://example.org/a/long/path/to/the/needle' });
  const page = await browser.open('/?q=needle');
  await expect.poll(() => page.locator('.rows mark:visible').allTextContents()).toEqual(['needle', 'needle']);
  for (const mark of await page.locator('.rows mark').all()) {
    const [inner, outer] = [await mark.boundingBox(), await mark.locator('..').boundingBox()];
    expect(inner!.x + inner!.width).toBeLessThanOrEqual(outer!.x + outer!.width + 1);
  }
  await page.getByText('…before the needle, and more').waitFor();
});

browserTest('an invalid search filter is searched as text, and the page says so', async () => {
  const { page } = await openThree();
  const search = page.getByLabel('Search bookmarks');
  await search.fill('-site:beta.example.org');
  await page.getByText('Only words, phrases and tags can be excluded').waitFor();
  await shows(page).toEqual([]);
  await search.fill('site:beta.example.org OR alpha');
  await page.getByText('OR joins up to ten words, phrases or tags').waitFor();
  await shows(page).toEqual([]);
  await search.fill('colour:red');
  await page.getByText('There is no search filter “colour:”').waitFor();
  await shows(page).toEqual([]);
  await search.fill('alpha');
  await page.getByText('There is no search filter').waitFor({ state: 'detached' });
  await shows(page).toEqual(['Beta', 'Alpha']);
});

browserTest('a minus excludes, and OR finds either of two, also in a row that arrives later', async () => {
  const { page, browser } = await openThree();
  const search = page.getByLabel('Search bookmarks');
  await search.fill('example -alpha');
  await shows(page).toEqual(['Gimel']);
  await search.fill('beta OR gimel');
  await shows(page).toEqual(['Gimel', 'Beta']);
  await browser.post('/web/api/v1/bookmarks/add', { url: 'https://new.example/', title: 'Gimel ray' });
  await browser.post('/web/api/v1/bookmarks/add', { url: 'https://new.example/', title: 'Delta' });
  await browser.post('/web/api/v1/bookmarks/add', { url: 'https://new.example/', title: 'Beta ray' });
  await shows(page).toEqual(['Beta ray', 'Gimel ray', 'Gimel', 'Beta']);
});

browserTest('Back from the settings returns to the same place in the list', async () => {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: 220 }, (_, at) => ({
    url: `https://example.org/${at}`,
    title: `${at}`,
  }));
  await browser.post('/web/api/v1/import', { mode: 'merge', bookmarks });
  const page = await browser.open();
  await page.getByLabel('Order').selectOption('Added: oldest first');
  await expect.poll(() => titlesOf(page).then(([first]) => first)).toBe('0');
  await expect
    .poll(() =>
      page.evaluate(() => {
        scrollTo(0, 8_000);
        return scrollY;
      }),
    )
    .toBe(8_000);
  await expect.poll(() => titlesOf(page)).toContain('120');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('heading', { name: 'API tokens' }).waitFor();
  await page.goBack();
  await expect.poll(() => titlesOf(page)).toContain('120');
  expect(await page.evaluate(() => scrollY)).toBe(8_000);
});

browserTest('no count is shown before it is known', async () => {
  const browser = await browsers.signedIn(service);
  await add(browser, 'Alpha');
  const page = await browser.openTab();
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  await page.route('**/bookmarks/search', async (route) => {
    asked.resolve();
    await go.promise;
    await route.continue();
  });
  await page.goto(service.origin);
  await asked.promise;
  await page.getByText('Loading…').waitFor();
  expect(await page.getByText('0 of').count()).toBe(0);
  go.resolve();
  await page.getByText('1 of 10,000').waitFor();
});

browserTest('on a phone, a title has two lines, and no word of the selection bar is broken', async () => {
  const browser = await browsers.signedIn(service, { width: 390, height: 800 });
  await add(browser, 'A long title, of which more than 22 characters show');
  const page = await browser.open();
  const title = page.locator('.rows .title');
  const isCut = () => title.evaluate((element) => element.scrollHeight > element.clientHeight + 1);
  await expect.poll(isCut).toBe(false);
  await page.getByRole('checkbox').check();
  const heights = await page
    .locator('.selection button')
    .evaluateAll((buttons) => buttons.map((each) => each.clientHeight));
  expect(Math.max(...heights)).toBeLessThan(48);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

browserTest(
  'on a phone, tags take the whole line while the buttons of their bookmark are hidden',
  async () => {
    const browser = await browsers.signedIn(service, { width: 390, height: 800 });
    const tags = [
      'selfhosted software',
      'E-commerce platforms',
      'Automation',
      'Monitoring tools',
      'Zettelkasten',
    ];
    await add(browser, 'Tagged', { tags });
    const page = await browser.open();
    const row = page.locator('.rows > li');
    await row.waitFor();
    const freePixels = () =>
      row.evaluate((element) => {
        const { right } = element.getBoundingClientRect();
        return (
          right -
          Math.max(
            ...[...element.querySelectorAll('.chip')].map((chip) => chip.getBoundingClientRect().right),
          )
        );
      });
    await page.mouse.move(5, 790);
    await expect.poll(freePixels).toBeLessThan(16);
    await row.hover();
    const buttons = await row.locator('.acts').boundingBox();
    await expect.poll(freePixels).toBeGreaterThanOrEqual(buttons!.width);
  },
);

browserTest('on a phone, a row without tags is lower, and rows neither overlap nor have gaps', async () => {
  const browser = await browsers.signedIn(service, { width: 390, height: 800 });
  for (let at = 1; at <= 12; at += 1)
    await add(browser, `Row ${at}`, at % 3 === 0 ? { tags: ['third'] } : {});
  const page = await browser.open();
  await page
    .getByText('End of the list')
    .or(page.getByRole('link', { name: 'Row 12' }))
    .first()
    .waitFor();
  const boxes = () =>
    page.locator('.rows > li').evaluateAll((rows) =>
      rows.map((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return { top, bottom, isTagged: row.querySelector('.chip') !== null };
      }),
    );
  await expect.poll(async () => (await boxes()).length).toBe(12);
  const rows = await boxes();
  for (const [at, { top }] of rows.entries()) if (at > 0) expect(top).toBeCloseTo(rows[at - 1]!.bottom, 0);
  const heights = (isTagged: boolean) =>
    new Set(
      rows.filter((row) => row.isTagged === isTagged).map(({ top, bottom }) => Math.round(bottom - top)),
    );
  expect(heights(true)).toEqual(new Set([112]));
  expect(heights(false)).toEqual(new Set([80]));
  // A row becomes taller when it gets its first tag.
  await page.getByRole('checkbox', { name: 'Select “Row 11”' }).check();
  await page.getByRole('combobox', { name: 'Tag', exact: true }).fill('new');
  await page.getByRole('button', { name: 'Add tag' }).click();
  await expect.poll(async () => (await boxes()).filter(({ isTagged }) => isTagged).length).toBe(5);
  const { top, bottom } = (await boxes())[1]!;
  expect(Math.round(bottom - top)).toBe(112);
  expect(browser.faults).toEqual([]);
});

browserTest(
  'on a small phone, nothing extends beyond its row or the screen, in both row heights and both languages',
  async () => {
    const browser = await browsers.signedIn(service, { width: 360, height: 740 });
    await add(browser, 'A title that is long enough to need two lines on a phone', { comment: 'A comment' });
    await add(browser, 'Tagged', { tags: ['selfhosted software', 'E-commerce', 'Automation'] });
    const page = await browser.open('/openapi.json');
    for (const language of ['en', 'de']) {
      for (const rows of ['', 'compact']) {
        await page.evaluate((chosen) => Object.assign(localStorage, chosen), { language, rows });
        await page.goto(service.origin);
        await page.locator('.rows input[type=checkbox]').first().check();
        await page.locator('.selection').waitFor();
        const outside = () =>
          page.evaluate(() => {
            const isOutside = (
              element: Element,
              frame: { top: number; bottom: number; left: number; right: number },
            ) => {
              const { top, bottom, left, right, width } = element.getBoundingClientRect();
              const isSeen = width > 0 && getComputedStyle(element).clipPath === 'none';
              return (
                isSeen &&
                (top < frame.top - 1 ||
                  bottom > frame.bottom + 1 ||
                  left < frame.left - 1 ||
                  right > frame.right + 1)
              );
            };
            const view = { top: 0, left: 0, bottom: innerHeight, right: innerWidth };
            const rows = [...document.querySelectorAll('.rows > li')];
            return [
              ...rows.flatMap((row) =>
                [...row.children].filter((each) => isOutside(each, row.getBoundingClientRect())),
              ),
              ...[...document.querySelectorAll('.top *, .toolbar *, .selection *')].filter((each) =>
                isOutside(each, view),
              ),
            ].map(({ className, tagName, textContent }) => `${tagName} ${className} ${textContent}`);
          });
        await expect.poll(outside).toEqual([]);
      }
    }
    expect(browser.faults).toEqual([]);
  },
);

browserTest('the counts of tags change when a bookmark is added', async () => {
  const { browser, page } = await openThree();
  await add(browser, 'Delta', { tags: ['greek', 'new'] });
  const side = page.getByRole('complementary', { name: 'Tags' });
  await side.getByRole('button', { name: 'greek, 3 bookmarks' }).waitFor();
  await side.getByRole('button', { name: 'new, 1 bookmark', exact: true }).waitFor();
});

browserTest(
  'tags with paths form a tree: a parent finds all tags below it, and is renamed together with them',
  async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Alpha', { tags: ['Work/Databases'] });
    await add(browser, 'Beta', { tags: ['Work', 'home'] });
    await add(browser, 'Gimel', { tags: ['Work/Databases/Old'] });
    const page = await browser.open();
    const side = page.getByRole('complementary', { name: 'Tags' });
    const names = () => side.locator('.tag .name').allTextContents();
    await expect.poll(names).toEqual(['home', 'Work']);
    await side.getByRole('button', { name: 'Tags below Work', exact: true }).click();
    expect(await names()).toEqual(['home', 'Work', 'Databases']);
    await side.getByRole('button', { name: 'Work/Databases and the tags below it' }).click();
    await shows(page).toEqual(['Gimel', 'Alpha']);
    expect(new URL(page.url()).searchParams.get('q')).toBe('under:Work/Databases');
    await add(browser, 'Delta', { tags: ['work/databases/new'] });
    await shows(page).toEqual(['Delta', 'Gimel', 'Alpha']);

    const screen = await openTags(page);
    await screen.getByRole('button', { name: 'Rename tag Work', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Rename tag Work' });
    expect(await dialog.getByLabel('Also rename the 3 tags below it').isChecked()).toBe(true);
    await dialog.getByLabel('New name of tag Work').fill('Job');
    await page.keyboard.press('Enter');
    await screen.getByRole('button', { name: 'Rename tag Job/Databases/Old' }).waitFor();
    await screen.getByRole('button', { name: 'Close' }).click();
    // The search text gets the new name of the tag.
    await shows(page).toEqual(['Delta', 'Gimel', 'Alpha']);
    expect(new URL(page.url()).searchParams.get('q')).toBe('under:Job/Databases');
    await side.getByRole('button', { name: 'Tags below Job', exact: true }).click();
    expect(await names()).toEqual(['home', 'Job', 'Databases']);
    await side.getByRole('button', { name: 'Job/Databases and the tags below it' }).click();
    await shows(page).toEqual(['Delta', 'Gimel', 'Beta', 'Alpha']);
  },
);

browserTest(
  'a folder that is no tag itself is renamed and deleted with its tags, and so is a tag with tags below it',
  async () => {
    const browser = await browsers.signedIn(service);
    await add(browser, 'Alpha', { tags: ['A\\/B/one', 'A\\/B/two'] });
    await add(browser, 'Beta', { tags: ['Work', 'Work/a', 'home'] });
    const page = await browser.open();
    const screen = await openTags(page);
    const names = async () => (await screen.locator('.name').allTextContents()).sort();
    await expect.poll(names).toEqual(['A/B', 'A/B › one', 'A/B › two', 'Work', 'Work/a', 'home']);
    await screen.getByText('2 tags below it').waitFor();
    await screen.getByRole('button', { name: 'Rename tag A\\/B', exact: true }).click();
    await page.getByLabel('New name of tag A\\/B').fill('C');
    await page.keyboard.press('Enter');
    await expect.poll(names).toEqual(['C', 'C/one', 'C/two', 'Work', 'Work/a', 'home']);
    await screen.getByRole('button', { name: 'Delete tag C', exact: true }).click();
    await page
      .getByRole('dialog', { name: 'Delete the 2 tags below “C”? The bookmarks are kept.' })
      .getByRole('button', { name: 'Delete tag' })
      .click();
    await expect.poll(names).toEqual(['Work', 'Work/a', 'home']);
    await screen.getByRole('button', { name: 'Delete tag Work', exact: true }).click();
    const question = page.getByRole('dialog', { name: 'This removes it from 1 bookmark' });
    await question.getByLabel('Also delete the tag below it').check();
    await question.getByRole('button', { name: 'Delete tag' }).click();
    await expect.poll(names).toEqual(['home']);
    await screen.getByRole('button', { name: 'Close' }).click();
    await shows(page).toEqual(['Beta', 'Alpha']);
  },
);

browserTest('all tags can be shown. A folder shows a total, and its name as people wrote it', async () => {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: 310 }, (_, at) => ({
    url: `https://example.org/${at}`,
    tags: [`tag ${at}`],
  }));
  await browser.post('/web/api/v1/import', { mode: 'merge', bookmarks });
  await add(browser, 'Deep', { tags: ['Küche/A\\/B/Deep'] });
  await add(browser, 'High', { tags: ['Küche'] });
  const page = await browser.open();
  const side = page.getByRole('complementary', { name: 'Tags' });
  await page.locator('.rows .chip', { hasText: 'Küche › A/B › Deep' }).waitFor();
  await side.getByText('300 of 311 tags shown').waitFor();
  await side.getByRole('button', { name: 'Load more' }).click();
  await side.getByText('tags shown').waitFor({ state: 'detached' });
  expect(await side.locator('.tag').count()).toBe(311);
  const folder = side.getByRole('button', { name: 'Küche and the tags below it, 2' });
  expect(await folder.locator('.count').getAttribute('data-count')).toBe('2');
  await side.getByRole('button', { name: 'Tags below Küche' }).click();
  await side.getByRole('button', { name: 'Küche › A/B and the tags below it, 1' }).click();
  await shows(page).toEqual(['Deep']);
  await side.getByLabel('Find a tag').fill('deep');
  expect(await side.getByRole('button', { name: 'Deep' }).getAttribute('title')).toBe('Küche › A/B › Deep');

  const screen = await openTags(page);
  await screen.getByText('300 of 313 tags shown').waitFor();
  await screen.getByRole('button', { name: 'Load more' }).click();
  await expect.poll(() => screen.locator('li').count()).toBe(313);
  await screen.getByLabel('Find a tag').fill('deep');
  expect(await screen.locator('li .name').allTextContents()).toEqual(['Küche › A/B › Deep']);
});

browserTest('the list of tags is one tab stop: arrow keys move in it and open branches', async () => {
  const browser = await browsers.signedIn(service);
  await add(browser, 'Alpha', { tags: ['a', 'b', 'Work/Databases', 'Work'] });
  const page = await browser.open();
  const side = page.getByRole('complementary', { name: 'Tags' });
  await expect.poll(() => side.locator('.tag .name').allTextContents()).toEqual(['a', 'b', 'Work']);
  expect(await side.locator('.tags [tabindex="0"]').count()).toBe(1);
  await side.getByRole('button', { name: 'a, 1 bookmark' }).focus();
  const focused = () => page.evaluate(() => document.activeElement?.querySelector('.name')?.textContent);
  const typed: [string, string][] = [
    ['ArrowDown', 'b'],
    ['End', 'Work'],
    ['ArrowRight', 'Work'],
    ['ArrowDown', 'Databases'],
    ['ArrowUp', 'Work'],
    ['ArrowLeft', 'Work'],
    ['ArrowDown', 'Work'],
    ['Home', 'a'],
    ['ArrowUp', 'a'],
  ];
  for (const [key, name] of typed) {
    await page.keyboard.press(key);
    expect([key, await focused()]).toEqual([key, name]);
  }
  expect(await side.locator('.tags [tabindex="0"]').count()).toBe(1);
  await page.keyboard.press('Enter');
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('tag:a');
});

/** Opens the dialog with all tags. */
async function openTags(page: Page) {
  await page.getByRole('button', { name: 'Edit tags' }).click();
  return page.getByRole('dialog', { name: 'Edit tags' });
}

browserTest('tags are renamed and deleted in a dialog, which orders them by use or by name', async () => {
  const { browser, page } = await openThree();
  await browser.post('/web/api/v1/tags/create', { name: 'alone' });
  const screen = await openTags(page);
  const names = () => screen.locator('.name').allTextContents();
  await expect.poll(names).toEqual(['greek', 'to read', 'alone']);
  await screen.getByLabel('Order').selectOption('By name');
  expect(await names()).toEqual(['alone', 'greek', 'to read']);
  // A renamed tag may no longer match the text that filters the tags, so the dialog says that it was renamed.
  await screen.getByLabel('Find a tag').fill('greek');
  await screen.getByRole('button', { name: 'Rename tag greek' }).click();
  await page.getByLabel('New name of tag greek').fill('letters');
  await page.keyboard.press('Enter');
  await screen.getByText('Renamed to “letters”.').waitFor();
  expect(await names()).toEqual([]);
  await screen.getByLabel('Find a tag').fill('');
  await screen.getByRole('button', { name: 'Rename tag letters' }).waitFor();
  await expect.poll(() => page.locator('.rows .chip', { hasText: 'letters' }).count()).toBe(2);
  await add(browser, 'Delta', { tags: ['letters'] });
  await screen.getByText('3 bookmarks').waitFor();
  await screen.getByRole('button', { name: 'Delete tag letters' }).click();
  await page
    .getByRole('dialog', { name: 'This removes it from 3 bookmarks' })
    .getByRole('button', { name: 'Delete tag' })
    .click();
  await expect.poll(() => page.locator('.rows .chip').allTextContents()).toEqual(['to read']);
});

browserTest('all unused tags are deleted at once, except one that is used meanwhile', async () => {
  const { browser, page } = await openThree();
  for (const name of ['one', 'two', 'three']) await browser.post('/web/api/v1/tags/create', { name });
  const screen = await openTags(page);
  await screen.getByRole('button', { name: 'Delete 3 unused tags' }).click();
  const question = page.getByRole('dialog', { name: 'Delete the 3 tags' });
  await question.waitFor();
  await add(browser, 'Delta', { tags: ['two'] });
  await screen.getByText('1 bookmark').nth(1).waitFor();
  await question.getByRole('button', { name: 'Delete 3' }).click();
  await expect.poll(() => screen.locator('.name').allTextContents()).toEqual(['greek', 'to read', 'two']);
});

browserTest('a tag that gets the name of another one is merged with it, after a question', async () => {
  const { browser, page } = await openThree();
  const screen = await openTags(page);
  await screen.getByRole('button', { name: 'Rename tag to read' }).click();
  await page.getByLabel('New name of tag to read').fill('GREEK');
  await page.keyboard.press('Enter');
  await page
    .getByRole('dialog', { name: /“greek” with 2 bookmarks.*changes the tags of 1 bookmark/ })
    .getByRole('button', { name: 'Merge' })
    .click();
  await expect.poll(() => page.locator('.rows .chip').allTextContents()).toEqual(['greek', 'greek']);
  expect(await browser.post('/web/api/v1/tags/list')).toMatchObject({
    tags: [{ name: 'greek', bookmark_count: 2 }],
  });
});

browserTest('all results can be selected, even those that the page has not read yet', async () => {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: 720 }, (_, at) => ({
    url: `https://example.org/${at}`,
    title: at % 2 === 0 ? `even ${at}` : `odd ${at}`,
  }));
  await browser.post('/web/api/v1/import', { bookmarks });
  const page = await browser.open('/?q=even');
  await page.getByRole('checkbox').first().check();
  await page.getByRole('button', { name: 'Select all 360' }).click();
  await page.getByText('360 selected').waitFor();
  await page.getByRole('combobox', { name: 'Tag', exact: true }).fill('pair');
  await page.getByRole('button', { name: 'Add tag' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Add tag' }).click();
  await page.getByText('Tag “pair” added to 360 bookmarks.').waitFor();
  await page.getByRole('region', { name: 'Selected bookmarks' }).waitFor({ state: 'hidden' });
  await page.getByRole('checkbox').first().check();
  await page.getByRole('button', { name: 'Select all 360' }).click();
  await page.getByText('360 selected').waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Nothing found').first().waitFor();
  expect(await browser.post('/web/api/v1/bookmarks/search', { per_page: 1 })).toMatchObject({ total: 360 });
  await page.keyboard.press('z');
  await page.getByText('360 bookmarks found').waitFor();
  expect(browser.faults).toEqual([]);
});

browserTest('selecting all results ends with another search, and says if a page cannot be read', async () => {
  const browser = await browsers.signedIn(service);
  const bookmarks = Array.from({ length: 300 }, (_, at) => ({
    url: `https://example.org/${at}`,
    title: 'Same',
  }));
  await browser.post('/web/api/v1/import', { bookmarks });
  const page = await browser.open();
  await page.getByText('300 of 10,000').waitFor();
  const refusal = { error: 'cursor: is unheard of', code: 'VALIDATION_ERROR' };
  await page.route('**/bookmarks/search', (route) => route.fulfill({ status: 400, json: refusal }));
  await page.getByRole('checkbox').first().check();
  await page.getByRole('button', { name: 'Select all 300' }).click();
  await page.getByRole('status').getByText('1 selected').waitFor();
  await page.getByText('The list could not be loaded').first().waitFor();
  await page.unroute('**/bookmarks/search');

  // The next page does not arrive before the search has changed.
  const held = Promise.withResolvers<void>();
  await page.route(
    '**/bookmarks/search',
    async (route) => {
      await held.promise;
      await route.continue().catch(() => {});
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Select all 300' }).click();
  await page.getByText(/^Reading /).waitFor();
  await page.getByLabel('Search bookmarks').fill('nothing');
  await page.getByText('Nothing found').first().waitFor();
  held.resolve();
  await page.getByLabel('Search bookmarks').fill('');
  await page.getByText('300 of 10,000').waitFor();
  expect(await page.getByText(/selected$/).isVisible()).toBe(false);
  expect(browser.faults).toEqual([]);
});

browserTest('several bookmarks are selected, tagged and deleted, and one undo restores them', async () => {
  const { browser, page } = await openThree();
  await page.getByRole('checkbox', { name: 'Select “Gimel”' }).check();
  await page.getByRole('checkbox', { name: 'Select “Alpha”' }).click({ modifiers: ['Shift'] });
  await page.getByText('3 selected').waitFor();
  await page
    .getByRole('textbox', { name: 'Tag' })
    .or(page.getByRole('combobox', { name: 'Tag', exact: true }))
    .fill('all');
  await page.getByRole('button', { name: 'Add tag' }).click();
  await expect.poll(() => page.locator('.rows .chip', { hasText: 'all' }).count()).toBe(3);
  await page.getByRole('checkbox', { name: 'Select “Beta”' }).uncheck();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await shows(page).toEqual(['Beta']);
  await page.getByText('Deleted 2 bookmarks.').waitFor();
  await page.keyboard.press('z');
  await shows(page).toEqual(['Gimel', 'Beta', 'Alpha']);
  expect(browser.faults).toEqual([]);
});
