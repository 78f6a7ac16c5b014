import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { browserTest, titlesOf, type UserBrowser, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';

// Tests of what all pages have in common: axe finds nothing, attacks in texts have no effect, and a keyboard is enough.
// `npm run bench -- web` measures how fast the page is.

const service = useService({ freeBookmarkLimit: 200_000 });
const browsers = useBrowser();

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const call = <T = { id: number }>(browser: UserBrowser, path: string, body: object = {}) =>
  browser.post(`/web/api/v1${path}`, body) as Promise<T>;

/** axe's rules about colours. Only their results can differ between dark mode and light mode. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * Returns a text for each element that breaks one of axe's rules. The debugger runs axe, so the page's security policy
 * does not block it.
 */
async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return page.evaluate(async (values) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: Violation[] }> };
    };
    interface Violation {
      id: string;
      nodes: { html: string; failureSummary: string }[];
    }
    const found = await axe.run({
      resultTypes: ['violations'],
      ...(values && { runOnly: { type: 'rule', values } }),
    });
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
    );
  }, rules);
}

/** Waits until no animation runs, because axe cannot measure a colour that is changing. */
const untilStill = (page: Page) =>
  page.evaluate(async () => {
    await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
  });

async function addSome(browser: UserBrowser): Promise<void> {
  const entries = [
    {
      url: 'https://example.org/one',
      title: 'One',
      tags: ['a', 'b', 'c', 'd', 'e', 'f'],
      comment: 'A comment',
    },
    { url: 'https://example.com/two', title: 'ספר – ויקיפדיה', tags: ['reading'], comment: 'My comment' },
    { url: 'https://example.net/three' },
  ];
  for (const entry of entries) await call(browser, '/bookmarks/add', entry);
}

describe('axe finds nothing, in light and dark colours,', () => {
  const violationsOf = async (page: Page) => {
    const inLight = await violations(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await untilStill(page);
    const inDark = await violations(page, COLOUR_RULES);
    await page.emulateMedia({ colorScheme: 'light' });
    await untilStill(page);
    return [...inLight, ...inDark];
  };

  browserTest('on the sign-in page, with an error', async () => {
    const page = await (await browsers.visitor(service)).open();
    await page.getByLabel('Invite code').fill('x');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('8 or 12 letters').waitFor();
    expect(await violationsOf(page)).toEqual([]);
  });

  browserTest(
    'on the bookmarks: empty, a list, the forms, a selection, an undo, matches, nothing found, the keys',
    async () => {
      const browser = await browsers.signedIn(service);
      const page = await browser.open();
      await page.getByText('No bookmarks yet').waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await addSome(browser);
      await expect.poll(() => titlesOf(page)).toHaveLength(3);
      await page.getByRole('button', { name: 'reading, 1 bookmark' }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Edit “One”' }).click();
      await page.getByRole('combobox', { name: 'Tags' }).fill('read');
      await page.getByRole('option', { name: 'reading' }).waitFor();
      await page.keyboard.press('ArrowDown');
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByLabel('Address').fill('https://example.org/one');
      await page.getByText('You already saved').waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('checkbox', { name: 'Select “One”' }).check();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await page.getByRole('button', { name: 'Undo' }).waitFor();
      await untilStill(page);
      expect(await violationsOf(page)).toEqual([]);
      await page.getByLabel('Search bookmarks').fill('comment');
      await page.locator('mark').first().waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByLabel('Search bookmarks').fill('nothing has this');
      await page.getByRole('heading', { name: 'Nothing found' }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByRole('button', { name: 'Edit tags' }).click();
      await page.getByRole('dialog', { name: 'Edit tags' }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.locator('h1').click();
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
    },
  );

  browserTest(
    'on the settings, with a preview, an outcome and a new token; on the window of the bookmarklet',
    async () => {
      const browser = await browsers.signedIn(service);
      const page = await browser.open('/settings');
      const buffer = Buffer.from(
        '<DL><DT><A HREF="https://example.org/">A</A><DT><A HREF="about:x">B</A></DL>',
      );
      await page.locator('input[type=file]').setInputFiles({ name: 'b.html', mimeType: 'text/html', buffer });
      await page.getByLabel('Replace them all').check();
      await page.getByLabel('Name').fill('axe');
      await page.getByRole('button', { name: 'Create token' }).click();
      await page.getByRole('button', { name: 'Copy' }).waitFor();
      await page.getByText('Try it with curl').click();
      expect(await violationsOf(page)).toEqual([]);
      await page.getByLabel('Keep them').check();
      await page.getByRole('button', { name: 'Import 1 bookmark' }).click();
      await page.getByText('1 not imported').first().waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await page.goto(`${service.origin}/save?url=https://example.org/&title=A`);
      await page.getByText('You already saved').waitFor();
      expect(await violationsOf(page)).toEqual([]);
    },
  );

  browserTest('on a narrow screen, and after the session has ended', async () => {
    const browser = await browsers.signedIn(service, { width: 320, height: 600 });
    await addSome(browser);
    const page = await browser.open();
    await expect.poll(() => titlesOf(page)).toHaveLength(3);
    await page.getByRole('button', { name: 'Tags' }).click();
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await call(browser, '/logout');
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
  });
});

describe('an attack has no effect', () => {
  const ATTACKS = [
    '<img src=x onerror=globalThis.hacked=1>',
    '"><script>globalThis.hacked=1</script>',
    "javascript:globalThis.hacked=1//' onmouseover='globalThis.hacked=1",
    '<svg/onload=globalThis.hacked=1>{{constructor.constructor("globalThis.hacked=1")()}}',
  ];

  const isHacked = (page: Page) => page.evaluate(() => 'hacked' in globalThis);

  browserTest('in a bookmark, a tag, an address, a search, or a file to import', async () => {
    const browser = await browsers.signedIn(service);
    for (const [n, attack] of ATTACKS.entries()) {
      const url = `https://example.org/${n}?${attack}`;
      await call(browser, '/bookmarks/add', { url, title: attack, comment: attack, tags: [attack] });
    }
    const page = await browser.open();
    await expect.poll(() => titlesOf(page)).toEqual(ATTACKS.toReversed());
    expect(
      await page.locator('.rows img, .rows script, .rows [onerror], .rows a:not([href^=http])').count(),
    ).toBe(0);
    await page.locator('.rows .title').first().hover();
    await page
      .getByRole('button', { name: /^Edit “/ })
      .first()
      .click();
    await page.getByRole('combobox', { name: 'Tags' }).fill('<');
    await page.getByRole('listbox', { name: 'Your tags' }).getByRole('option').first().waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page
      .getByRole('button', { name: /^Delete “/ })
      .first()
      .click();
    await page.getByRole('button', { name: 'Undo' }).click();
    // A `javascript:` address can run only if it is the whole text. Markup can be anywhere in a text.
    const [script] = ATTACKS.filter((attack) => attack.startsWith('javascript:'));
    for (const attack of [script!, ATTACKS.join(' ')]) {
      await page.goto(`${service.origin}/?q=${encodeURIComponent(attack)}#${encodeURIComponent(attack)}`);
      await page.getByLabel('Search bookmarks').waitFor();
      expect(await page.getByLabel('Search bookmarks').inputValue()).toBe(attack);
      await page.goto(
        `${service.origin}/save?url=${encodeURIComponent(attack)}&title=${encodeURIComponent(attack)}`,
      );
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('This is not a web address').waitFor();
    }
    await page.goto(`${service.origin}/settings`);
    const bookmarks = [...ATTACKS, ...ATTACKS.map((attack) => `https://example.org/${attack}`)].map(
      (url) => ({
        url,
        title: url,
        tags: [url],
      }),
    );
    const buffer = Buffer.from(JSON.stringify({ bookmarks }));
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: `${ATTACKS[0]!}.json`, mimeType: 'a/b', buffer });
    await page.getByRole('button', { name: /^Import / }).click();
    await page.getByText('4 not imported').first().waitFor();
    await page.getByLabel('Name').fill(ATTACKS[0]!);
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('button', { name: 'Copy' }).waitFor();
    expect(await isHacked(page)).toBe(false);
    expect(browser.faults).toEqual([]);
  });

  browserTest('the browser itself refuses markup from a script', async () => {
    const page = await (await browsers.signedIn(service)).open();
    await page.getByText('No bookmarks yet').waitFor();
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML = '<b>x</b>';
        return 'written';
      } catch (error) {
        return (error as Error).name;
      }
    });
    expect(refused).toBe('TypeError');
  });
});

browserTest(
  'shortcuts on character keys do nothing once they are turned off in the settings, in other tabs too',
  async () => {
    const browser = await browsers.signedIn(service);
    await call(browser, '/bookmarks/add', { url: 'https://example.org/', title: 'Stays' });
    const page = await browser.open();
    await page.getByText('Stays').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('link', { name: 'Turn off shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    const settings = await browser.open('/settings#keyboard');
    const box = settings.getByRole('checkbox', { name: 'Keyboard shortcuts' });
    await box.focus();
    await settings.keyboard.press('Space');
    await page.bringToFront();
    const hints = page.locator('[aria-keyshortcuts]');
    await expect.poll(() => hints.count()).toBe(0);
    for (const key of ['j', 'ArrowDown', 'x', 'n', '?', '/', 'e']) await page.keyboard.press(key);
    expect(await page.locator('form.editor, dialog, .selection:not([hidden])').count()).toBe(0);
    // Other keys still work: Delete deletes the bookmark that has the focus.
    await page.locator('.rows .title').focus();
    await page.keyboard.press('e');
    await page.keyboard.press('Delete');
    await page.getByText('Deleted “Stays”').waitFor();
    await page.keyboard.press('z');
    expect(await titlesOf(page)).toEqual([]);
    // The setting is stored. When the setting is turned on again, the shortcuts work.
    await settings.reload();
    await expect.poll(() => box.isChecked()).toBe(false);
    await box.check();
    await page.bringToFront();
    await expect.poll(() => hints.count()).toBeGreaterThan(0);
    await page.keyboard.press('n');
    await page.locator('form.editor').waitFor();
  },
);

browserTest('a keyboard is enough to sign in, add, find, edit, delete, undo and create a token', async () => {
  const visitor = await browsers.visitor(service);
  const page = await visitor.open();
  const { keyboard } = page;
  const focused = () =>
    page.evaluate(
      () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent,
    );
  await page.getByLabel('Invite code').waitFor();
  await keyboard.type(await service.invite(`keys-${process.pid}@example.org`));
  await keyboard.press('Enter');
  await page.getByText('No bookmarks yet').waitFor();
  await keyboard.press('n');
  await page.locator('form.editor').waitFor();
  await keyboard.type('https://example.org/keys');
  await keyboard.press('Tab');
  await keyboard.type('By keys');
  await keyboard.press('Tab');
  await keyboard.type('hands,');
  await keyboard.press('Control+Enter');
  await expect.poll(() => titlesOf(page)).toEqual(['By keys']);
  await keyboard.press('/');
  await keyboard.type('keys');
  await page.getByText('1 bookmark found').waitFor();
  // The test moves the focus out of the search field, so that the next keys move through the list.
  await page.locator('h1').evaluate(() => (document.activeElement as HTMLElement).blur());
  await keyboard.press('j');
  await expect.poll(focused).toBe('By keys');
  await keyboard.press('e');
  await expect
    .poll(() => page.evaluate(() => (document.activeElement as HTMLInputElement)?.name))
    .toBe('title');
  await keyboard.press('End');
  await keyboard.type(' alone');
  await keyboard.press('Enter');
  await expect.poll(() => titlesOf(page)).toEqual(['By keys alone']);
  await expect.poll(focused).toBe('By keys alone');
  await keyboard.press('Delete');
  await page.getByText('Deleted “By keys alone”').waitFor();
  await keyboard.press('z');
  await expect.poll(() => titlesOf(page)).toEqual(['By keys alone']);
  await page.getByRole('link', { name: 'Settings' }).focus();
  await keyboard.press('Enter');
  await page.getByLabel('Name').waitFor();
  for (
    let tabs = 0;
    tabs < 60 && (await page.evaluate(() => (document.activeElement as HTMLInputElement)?.name)) !== 'name';
    tabs += 1
  )
    await keyboard.press('Tab');
  await keyboard.type('typed');
  await keyboard.press('Enter');
  await page.getByRole('button', { name: 'Copy' }).waitFor();
  expect(visitor.faults).toEqual([]);
});

describe('preferences of a user', () => {
  browserTest(
    'a title in a right-to-left script keeps its direction, and its row stays left-to-right',
    async () => {
      const browser = await browsers.signedIn(service);
      await addSome(browser);
      const page = await browser.open();
      const directionOf = (title: string) =>
        page.getByRole('link', { name: title }).evaluate((link) => getComputedStyle(link).direction);
      await page.getByRole('link', { name: 'One', exact: true }).waitFor();
      expect([await directionOf('ויקיפדיה'), await directionOf('One')]).toEqual(['rtl', 'ltr']);
      const row = page.locator('.rows > li', { hasText: 'ויקיפדיה' });
      expect(await row.evaluate((element) => getComputedStyle(element).direction)).toBe('ltr');
    },
  );

  browserTest('nothing moves for a user who prefers reduced motion', async () => {
    const browser = await browsers.signedIn(service);
    await addSome(browser);
    const page = await browser.open();
    await page.getByRole('checkbox', { name: 'Select “One”' }).check();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    const notice = page.locator('.notice').first();
    await notice.waitFor();
    const motion = () => notice.evaluate((element) => getComputedStyle(element).animationName);
    expect(await motion()).toBe('none');
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect(await motion()).toBe('rise');
  });
});
