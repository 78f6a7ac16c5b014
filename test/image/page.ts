import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { provide } from '../support/programs.ts';

/** Opens the image's page in a real browser. If the image lacked one of the page's files, the page would not work. */

const LIMIT_MS = 30_000;

/** Signs in with an invite, adds a bookmark, and imports a file on the settings page. Throws if anything fails. */
export async function usePage(origin: string, code: string): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? (await provide('chromium')),
    args: ['--no-sandbox'],
  });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    const faults: string[] = [];
    page.on('pageerror', ({ message }) => faults.push(message));
    page.on('response', (response) => {
      // Before the user signs in, the page's request for the profile gets 401, which is not a fault.
      if (response.status() >= 400 && response.status() !== 401)
        faults.push(`${response.url()}: ${response.status()}`);
    });
    await page.goto(origin);
    await page.getByLabel('Invite code').fill(code);
    await page.keyboard.press('Enter');
    await page.getByText('No bookmarks yet').waitFor();
    await page.keyboard.press('n');
    // The page loads the form after it has shown the list.
    await page.getByLabel('Address').fill('https://example.org/by-page');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('link', { name: 'example.org/by-page' }).waitFor();
    await page.goto(`${origin}/settings`);
    // The page reads this file in a web worker, which loads its own modules.
    await page.locator('input[type=file]').setInputFiles({
      name: 'bookmarks.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('url\nhttps://example.org/by-file\n'),
    });
    await page.getByRole('button', { name: 'Import 1 bookmark' }).click();
    await page.getByText('1 bookmark imported').waitFor();
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}
