import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { issueInvite } from '../../../src/admin/invites.ts';
import { openDatabase } from '../../../src/store/open-database.ts';
import { provide } from '../../support/programs.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { COMMON_WORD, RARE_WORD, SECOND_WORD } from '../harness/collections.ts';
import { runPsql } from '../harness/programs.ts';
import { startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCollection, sizesOf, TEN_THOUSAND } from './collection.ts';

/** The page in a real browser, as its reader feels it. */

const CPU_SLOWDOWN = 4;

/** What the page has to reach. */
const MARKS = { firstListMs: 1_000, typingP95Ms: 150, taskMs: 50 };

/** Runs in the page before everything else: notes when the first row stands, and tasks that block. */
const WATCH = `
  globalThis.measured = { firstRowMs: 0, tasks: [] };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) measured.tasks.push(duration);
  }).observe({ type: 'longtask', buffered: true });
  const observer = new MutationObserver(() => {
    if (document.querySelector('.rows > li') === null) return;
    measured.firstRowMs = performance.now();
    observer.disconnect();
  });
  observer.observe(document, { childList: true, subtree: true });
`;

interface Measured {
  firstRowMs: number;
  tasks: number[];
}

const measuredOf = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { measured: Measured }).measured);

async function signIn(browser: Browser, databaseUrl: string, origin: string): Promise<BrowserContext> {
  const email = await runPsql(databaseUrl, `select email from users where id = ${TEN_THOUSAND}`);
  const database = await openDatabase({ url: databaseUrl, max: 1 });
  const { code } = await issueInvite(database, email.trim(), 1);
  await database.close(0);
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 } });
  await context.addInitScript(WATCH);
  const headers = { origin, 'content-type': 'application/json' };
  await context.request.post(`${origin}/web/login/invite`, { headers, data: JSON.stringify({ code }) });
  return context;
}

/** A load with an empty cache: when the first row stands, and the bytes that came. */
async function loadCold(context: BrowserContext, origin: string): Promise<{ ms: number; bytes: number }> {
  const page = await context.newPage();
  const debug = await context.newCDPSession(page);
  let bytes = 0;
  debug.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await debug.send('Network.enable');
  await debug.send('Network.setCacheDisabled', { cacheDisabled: true });
  await debug.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
  await page.goto(origin);
  await page.locator('.rows > li').first().waitFor();
  const { firstRowMs } = await measuredOf(page);
  await page.close();
  return { ms: firstRowMs, bytes };
}

/** From each key of some words to the list that shows what it finds, in ms. */
async function measureTyping(page: Page): Promise<number[]> {
  const texts = [COMMON_WORD, SECOND_WORD, RARE_WORD].flatMap((word) =>
    Array.from(word, (_, at) => word.slice(0, at + 1)),
  );
  return page.evaluate(async (all) => {
    const input = document.querySelector<HTMLInputElement>('input[name="q"]')!;
    const list = document.querySelector('main')!;
    const times: number[] = [];
    for (const text of all) {
      const before = performance.now();
      const shown = new Promise<void>((resolve) => {
        const observer = new MutationObserver(() => {
          if (document.querySelector('.total')!.textContent === '') return;
          observer.disconnect();
          resolve();
        });
        // The list says first that it reads: what counts is its next change.
        setTimeout(() => observer.observe(list, { childList: true, subtree: true, characterData: true }), 0);
      });
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
      await shown;
      times.push(performance.now() - before);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return times;
  }, texts);
}

/** Scrolls to the end of the collection; the longest task on the way, in ms. */
async function measureScrolling(page: Page, count: number): Promise<number> {
  const seen = (await measuredOf(page)).tasks.length;
  const last = page.locator('.rows > li').last();
  for (let turns = 0; turns < 2_000; turns += 1) {
    await page.mouse.wheel(0, 6_000);
    if (turns % 10 === 0 && (await last.getAttribute('aria-posinset')) === String(count)) break;
  }
  const { tasks } = await measuredOf(page);
  return Math.max(0, ...tasks.slice(seen));
}

const line = (what: string, unit: string, values: readonly number[], limit?: number): Line => ({
  bench: 'web',
  what,
  unit,
  service: spreadOf(values),
  ...(limit !== undefined && { mark: { text: `≤ ${limit}`, reached: spreadOf(values).median <= limit } }),
});

/** The page: a cold load, typing, scrolling. */
export const web: Bench = {
  name: 'web',
  async run(plan: Plan) {
    const url = await openCollection(plan);
    await using replica = await startReplica(plan.environment, url);
    const origin = `http://127.0.0.1:${replica.port}`;
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? (await provide('chromium')),
      args: ['--no-sandbox'],
    });
    try {
      const context = await signIn(browser, url, origin);
      // The first request has the replica make the files.
      await loadCold(context, origin);
      const loads = [];
      for (let round = 0; round < plan.effort.rounds; round += 1) loads.push(await loadCold(context, origin));
      const page = await context.newPage();
      await page.goto(origin);
      await page.locator('.rows > li').first().waitFor();
      const typed = (await measureTyping(page)).sort((one, other) => one - other);
      await page.goto(origin);
      await page.locator('.rows > li').first().waitFor();
      const { ten } = sizesOf(plan);
      const longest = await measureScrolling(page, ten);
      const ms = loads.map((load) => load.ms);
      const kilobytes = loads.map(({ bytes }) => bytes / 1_000);
      return [
        line(`first list of a cold load, CPU ${CPU_SLOWDOWN} times slower`, 'ms', ms, MARKS.firstListMs),
        line('bytes of a cold load, with its requests', 'kB', kilobytes),
        line('a key to its results, p95', 'ms', [typed[Math.floor(typed.length * 0.95)]!], MARKS.typingP95Ms),
        line(`longest task while scrolling ${ten.toLocaleString('en')}`, 'ms', [longest], MARKS.taskMs),
      ];
    } finally {
      await browser.close();
    }
  },
};
