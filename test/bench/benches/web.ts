import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { issueInvite } from '../../../src/admin/invites.ts';
import { openDatabase } from '../../../src/store/driver/open.ts';
import { provide } from '../../support/programs.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { COMMON_WORD, RARE_WORD, SECOND_WORD } from '../harness/collections.ts';
import { runPsql } from '../harness/programs.ts';
import { openReplica } from '../harness/replica.ts';
import { formatNumber, type Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';
import { HUNDRED_THOUSAND, openCollection, sizesOf, TEN_THOUSAND } from './collection.ts';

/** Measures the page in a real browser, as a user experiences the page. */

/** Returns the factor by which the browser's CPU is slowed down. */
const slowdownOf = ({ quick }: Plan): number => (quick ? 1 : 4);

/** The longest accepted times. */
const MARKS = { firstListMs: 1_000, typingP95Ms: 150, taskMs: 50 };

/** What the user types, letter by letter. */
const WORDS = [COMMON_WORD, SECOND_WORD, RARE_WORD];

/** How many of the 100,000 bookmarks to scroll through. Reading all pages would take minutes. */
const SCROLLED_ROWS = 10_000;

/** This script runs in the page before any other, and records when the first row appears. */
const WATCH = `
  globalThis.measured = { firstRowMs: 0 };
  const observer = new MutationObserver(() => {
    if (document.querySelector('.rows > li') === null) return;
    measured.firstRowMs = performance.now();
    observer.disconnect();
  });
  observer.observe(document, { childList: true, subtree: true });
`;

const readFirstRowMs = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { measured: { firstRowMs: number } }).measured.firstRowMs);

async function signIn(
  browser: Browser,
  databaseUrl: string,
  origin: string,
  user: number,
): Promise<BrowserContext> {
  const email = await runPsql(databaseUrl, `select email from users where id = ${user}`);
  const database = await openDatabase({ url: databaseUrl, max: 1 });
  const { code } = await issueInvite(database, email.trim(), 1);
  await database.close(0);
  // Service workers are blocked, because a service worker would answer every later load from its cache.
  const context = await browser.newContext({
    viewport: { width: 1_280, height: 900 },
    serviceWorkers: 'block',
  });
  await context.addInitScript(WATCH);
  const headers = { origin, 'content-type': 'application/json' };
  await context.request.post(`${origin}/web/login/invite`, { headers, data: JSON.stringify({ code }) });
  return context;
}

/** Loads the page with an empty cache. Returns the time when the first row appeared, and the bytes received. */
async function loadCold(
  context: BrowserContext,
  origin: string,
  slowdown: number,
): Promise<{ ms: number; bytes: number }> {
  const page = await context.newPage();
  const debug = await context.newCDPSession(page);
  let bytes = 0;
  debug.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await debug.send('Network.enable');
  await debug.send('Network.setCacheDisabled', { cacheDisabled: true });
  await debug.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  await page.goto(origin);
  await page.locator('.rows > li').first().waitFor();
  const ms = await readFirstRowMs(page);
  await page.close();
  return { ms, bytes };
}

/** Measures the time from each key press to the updated list, in ms. */
async function measureTyping(page: Page, words: readonly string[]): Promise<number[]> {
  const texts = words.flatMap((word) => Array.from(word, (_, at) => word.slice(0, at + 1)));
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
        // The first change of the list shows only that the search started. The next change is the result.
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

/** An event of Chromium's trace. Durations are in µs; `tdur` is the thread's own CPU time. */
interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  args?: { name?: string };
  dur?: number;
  tdur?: number;
}

/**
 * The longest task of the page's main thread in ms, measured by CPU time and by the clock. Other work on the machine
 * does not increase the CPU time.
 */
interface LongestTask {
  cpuMs: number;
  clockMs: number;
}

function findLongestTask(events: readonly TraceEvent[]): LongestTask {
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`;
  const mainThreads = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(threadOf),
  );
  const tasks = events.filter((event) => event.name.endsWith('RunTask') && mainThreads.has(threadOf(event)));
  const longest = (of: (task: TraceEvent) => number | undefined) =>
    Math.max(0, ...tasks.map((task) => (of(task) ?? 0) / 1_000));
  return { cpuMs: longest(({ tdur }) => tdur), clockMs: longest(({ dur }) => dur) };
}

/** Scrolls quickly through `count` rows. Returns the longest task during the scrolling. */
async function measureScrolling(browser: Browser, page: Page, count: number): Promise<LongestTask> {
  const last = page.locator('.rows > li').last();
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] });
  for (let rounds = 0; rounds < 2_000; rounds += 1) {
    await page.mouse.wheel(0, 6_000);
    if (rounds % 10 === 0 && Number(await last.getAttribute('aria-posinset')) >= count) break;
  }
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  return findLongestTask(traceEvents);
}

async function openList(context: BrowserContext, origin: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(origin);
  await page.locator('.rows > li').first().waitFor();
  return page;
}

const line = (what: string, unit: string, values: readonly number[], limit?: number): Line => ({
  bench: 'web',
  what,
  unit,
  service: spreadOf(values),
  ...(limit !== undefined && { mark: { text: `≤ ${limit}`, reached: spreadOf(values).median <= limit } }),
});

/** Measures a cold load of the page, typing and scrolling. */
export const web: Bench = {
  name: 'web',
  async run(plan: Plan) {
    const url = await openCollection(plan);
    await using replica = await openReplica(plan, url);
    const origin = `http://127.0.0.1:${replica.port}`;
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? (await provide('chromium')),
      args: ['--no-sandbox'],
    });
    try {
      const context = await signIn(browser, url, origin, TEN_THOUSAND);
      // The first request makes the replica build the page's files, so this load is not measured.
      const slowdown = slowdownOf(plan);
      await loadCold(context, origin, slowdown);
      const loads = [];
      for (let round = 0; round < plan.effort.rounds; round += 1)
        loads.push(await loadCold(context, origin, slowdown));
      const typing = await openList(context, origin);
      const typed = (await measureTyping(typing, plan.quick ? WORDS.slice(-1) : WORDS)).sort(
        (one, other) => one - other,
      );
      await typing.close();
      const { ten, hundred } = sizesOf(plan);
      const scrolled = plan.quick ? 300 : SCROLLED_ROWS;
      const scroll = async (within: BrowserContext, count: number, of: number) => {
        const page = await openList(within, origin);
        const { cpuMs, clockMs } = await measureScrolling(browser, page, count);
        await page.close();
        const what = `longest task while scrolling ${count.toLocaleString('en')} of ${of.toLocaleString('en')}`;
        const note = `CPU time of the main thread; ${formatNumber(clockMs)} ms by the clock`;
        return { ...line(what, 'ms', [cpuMs], MARKS.taskMs), note };
      };
      const large = await signIn(browser, url, origin, HUNDRED_THOUSAND);
      const ms = loads.map((load) => load.ms);
      const kilobytes = loads.map(({ bytes }) => bytes / 1_000);
      return [
        line(`first list of a cold load, CPU ${slowdown} times slower`, 'ms', ms, MARKS.firstListMs),
        line('bytes of a cold load, with its requests', 'kB', kilobytes),
        line('a key to its results, p95', 'ms', [typed[Math.floor(typed.length * 0.95)]!], MARKS.typingP95Ms),
        await scroll(context, Math.min(scrolled, ten), ten),
        await scroll(large, Math.min(scrolled, hundred), hundred),
      ];
    } finally {
      await browser.close();
    }
  },
};
