import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { makeFolder, removeFolder } from './support/folders.ts';
import { findFreePort } from './support/ports.ts';
import { provide } from './support/programs.ts';

/**
 * `npm run screenshots` takes pictures of the page's main states for `docs/`. It starts the service as `npm start`
 * does.
 */

const ROOT = join(import.meta.dirname, '..');

const DAY_MS = 86_400_000;

const BOOKMARKS: [url: string, title: string, tags: string[], comment?: string][] = [
  [
    'https://www.postgresql.org/docs/current/explicit-locking.html',
    'PostgreSQL: Explicit Locking',
    ['postgres', 'reference'],
  ],
  [
    'https://developer.mozilla.org/docs/Web/API/Navigation_API',
    'Navigation API - Web APIs',
    ['web', 'reference'],
    'pushState, thought through',
  ],
  ['https://www.youtube.com/watch?v=8aGhZQkoFbQ', 'What the heck is the event loop anyway?', ['video', 'js']],
  ['https://cooking.example.com/shakshuka', 'Shakshuka with feta', ['recipes'], 'Fewer tomatoes next time'],
  ['https://github.com/fastify/fastify', 'Fastify, fast and low overhead web framework', ['js', 'web']],
  ['https://sqlite.org/whentouse.html', 'Appropriate Uses For SQLite', ['sqlite', 'reference']],
  ['https://arxiv.org/abs/1706.03762', 'Attention Is All You Need', ['papers', 'to read']],
  ['https://www.openstreetmap.org/', 'OpenStreetMap', ['maps', 'travel']],
  [
    'https://news.ycombinator.com/item?id=13742917',
    'How do you organise your bookmarks?',
    ['to read'],
    'The answers about plain text files',
  ],
  ['https://www.rijksmuseum.nl/en/rijksstudio', 'Rijksstudio: works of the Rijksmuseum', ['art', 'travel']],
];

/** Starts the service. Resolves with the link that the service prints, and with a function that stops the service. */
async function startService(folder: string): Promise<{ link: string; end(): Promise<void> }> {
  const env = {
    PATH: process.env.PATH,
    DATA_DIR: folder,
    PORT: String(await findFreePort()),
    LOG_LEVEL: 'silent',
  };
  const child = spawn(process.execPath, ['src/main.ts'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const end = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  let printed = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    printed += chunk;
    const link = /http:\S+#code=\w+/.exec(printed)?.[0];
    if (link !== undefined) return { link, end };
  }
  throw new Error(`the service did not start: ${printed}`);
}

async function fillIn(context: BrowserContext, origin: string): Promise<void> {
  const bookmarks = BOOKMARKS.toReversed().map(([url, title, tags, comment = ''], n) => ({
    url,
    title,
    tags,
    comment,
    created_at: new Date(Date.now() - (BOOKMARKS.length - n - 1) ** 2 * DAY_MS * 0.4).toISOString(),
  }));
  const headers = { origin, 'content-type': 'application/json' };
  await context.request.post(`${origin}/web/api/v1/import`, { headers, data: JSON.stringify({ bookmarks }) });
}

const folder = makeFolder('screenshots');
const service = await startService(folder);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? (await provide('chromium')),
  args: ['--no-sandbox'],
});
try {
  const origin = new URL(service.link).origin;
  const context = await browser.newContext({ viewport: { width: 1_080, height: 680 }, locale: 'en-GB' });
  const page = await context.newPage();
  await page.goto(service.link);
  await page.getByText('No bookmarks yet').waitFor();
  await fillIn(context, origin);
  const draw = (name: string) => page.screenshot({ path: join(ROOT, 'docs', `page-${name}.png`) });
  await page.reload();
  await page.locator('.rows > li').nth(9).waitFor();
  await draw('bookmarks');
  const search = page.getByLabel('Search bookmarks');
  await search.fill('re');
  await page.getByRole('option', { name: 'tag:reference' }).waitFor();
  await page.locator('.rows mark').first().waitFor();
  await draw('search');
  await search.fill('');
  await page.locator('.rows > li').nth(9).waitFor();
  await page.keyboard.press('Escape');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.getByRole('button', { name: /^Edit “Navigation/ }).click();
  await draw('edit-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(origin);
  for (const title of ['Shakshuka', 'What the heck']) {
    const deleted = page.waitForResponse('**/bookmarks/delete');
    await page.getByRole('button', { name: `Delete “${title}` }).click();
    await deleted;
  }
  await page.getByRole('button', { name: 'Trash' }).click();
  await page.getByRole('dialog').locator('li').nth(1).waitFor();
  await draw('trash');
  await page.setViewportSize({ width: 375, height: 680 });
  await page.goto(origin);
  await page.locator('.rows > li').nth(6).waitFor();
  await draw('phone');
} finally {
  await browser.close();
  await service.end();
  removeFolder(folder);
}
