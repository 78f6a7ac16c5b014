import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, test } from 'vitest';
import { findProgram } from './programs.ts';
import type { TestService } from './service.ts';
import { newEmail } from './users.ts';

/** The path of the browser: the value of `CHROMIUM`, or else the path of the browser that this machine has. */
const EXECUTABLE = process.env.CHROMIUM ?? findProgram('chromium');

/**
 * A test that needs a browser. Without a browser, it is skipped and named at the end of the run. `.ci/run` installs a
 * browser, and fails if it cannot.
 */
export const browserTest = EXECUTABLE === undefined ? test.skip : test;

/** Properties of a user's browser. */
interface BrowserOptions {
  width?: number;
  height?: number;
  /** Default: true. Animations cost time in every test. */
  reducedMotion?: boolean;
  locale?: string;
  /** Whether the browser's cache is empty and its page can register a service worker. Default: false. */
  isFresh?: boolean;
}

/** One user's browser, with its own cookies and any number of tabs. */
export interface UserBrowser {
  readonly context: BrowserContext;
  /** The e-mail address of the user. Empty without a session. */
  readonly email: string;
  /** Opens a tab with a page of the service. */
  open(path?: string, origin?: string): Promise<Page>;
  /** Opens an empty tab. */
  openTab(): Promise<Page>;
  /** The errors of its pages, and their violations of the security policy. */
  readonly faults: string[];
  /** Sends a request as this browser's page does. */
  post(path: string, body?: unknown): Promise<unknown>;
}

export interface Browsers {
  /** Opens a browser without a session. */
  visitor(service: TestService, options?: BrowserOptions): Promise<UserBrowser>;
  /** Opens a browser that is signed in as a new user, or as the user with this address. */
  signedIn(service: TestService, options?: BrowserOptions & { email?: string }): Promise<UserBrowser>;
}

/** A context of Chromium, and its tab. The next test may use them again. */
interface Opened {
  context: BrowserContext;
  tab: Page | undefined;
  faults: string[];
}

const LOCALE = 'en-GB';

/**
 * Starts a browser for all tests of a file. Everything that a test opens in the browser is closed after the test. The
 * only exception is the first context of the test: it is emptied and used again, because Chromium would compile the
 * page again in a new context. With `isFresh` or a locale, a test always gets a new context.
 */
export function useBrowser(): Browsers {
  let browser: Browser | undefined;
  /** The context that the next test uses again. */
  let kept: Opened | undefined;
  /** Whether the current test has already opened a browser with `kept`. */
  let isTaken = false;
  beforeAll(async () => {
    if (EXECUTABLE === undefined) return;
    browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());
  afterEach(async ({ task }) => {
    if (isTaken && (task.result?.state === 'fail' || !(await emptyContext(kept!).catch(() => false))))
      kept = undefined;
    isTaken = false;
    for (const context of browser?.contexts() ?? []) if (context !== kept?.context) await context.close();
  });

  const open = async ({ locale = LOCALE, isFresh = false }: BrowserOptions): Promise<Opened> => {
    const isShared = locale === LOCALE && !isFresh && !isTaken;
    if (isShared && kept !== undefined) {
      isTaken = true;
      kept.faults = [];
      return kept;
    }
    const context = await browser!.newContext({ locale, serviceWorkers: isFresh ? 'allow' : 'block' });
    context.setDefaultTimeout(60_000);
    await context.addInitScript(removeBlur);
    const opened: Opened = { context, tab: undefined, faults: [] };
    context.on('weberror', (error) => opened.faults.push(String(error.error().stack)));
    context.on('console', (message) => {
      // The browser logs an error for every response with an error status. Some tests expect such responses, so these
      // errors do not count.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        opened.faults.push(message.text());
    });
    if (isShared) {
      isTaken = true;
      kept = opened;
    }
    return opened;
  };

  const visitor: Browsers['visitor'] = async (service, options = {}) => {
    const { width = 1_200, height = 800, reducedMotion = true } = options;
    const opened = await open(options);
    const { context, faults } = opened;
    let isFirst = true;
    const openTab = async () => {
      const page = isFirst && opened.tab?.isClosed() === false ? opened.tab : await context.newPage();
      if (isFirst) opened.tab = page;
      isFirst = false;
      await page.setViewportSize({ width, height });
      await page.emulateMedia({
        colorScheme: 'light',
        reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
      });
      return page;
    };
    return {
      context,
      email: '',
      faults,
      openTab,
      async open(path = '/', origin = service.origin) {
        const page = await openTab();
        await page.goto(origin + path);
        return page;
      },
      async post(path, body = {}) {
        const headers = { origin: service.origin, 'content-type': 'application/json' };
        const response = await context.request.post(service.origin + path, {
          headers,
          data: JSON.stringify(body),
        });
        return await response.json();
      },
    };
  };
  return {
    visitor,
    async signedIn(service, { email = newEmail(), ...options } = {}) {
      const opened = await visitor(service, options);
      await opened.post('/web/login/invite', { code: await service.invite(email) });
      return { ...opened, email };
    },
  };
}

/**
 * Removes the blur behind dialogs. Without a graphics card, the blur takes longer than everything else that a frame
 * draws.
 */
function removeBlur(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('::backdrop { backdrop-filter: none !important; }');
  document.adoptedStyleSheets.push(sheet);
}

/**
 * Removes what a test left in a context: tabs, listeners, routes, cookies and stored data. Returns false if it cannot.
 */
async function emptyContext({ context, tab }: Opened): Promise<boolean> {
  if (tab === undefined || tab.isClosed() || !tab.url().startsWith('http://127.0.0.1:')) return false;
  const { origin } = new URL(tab.url());
  for (const page of context.pages()) if (page !== tab) await page.close();
  context.removeAllListeners('response').removeAllListeners('page');
  tab.removeAllListeners('request').removeAllListeners('response');
  await context.unrouteAll({ behavior: 'ignoreErrors' });
  await tab.unrouteAll({ behavior: 'ignoreErrors' });
  await context.setOffline(false);
  // The page itself opens the empty document, because then the tab keeps its process and its origin. A navigation by
  // the debugger would not keep them.
  await Promise.all([
    tab.waitForURL('about:blank', { waitUntil: 'commit' }),
    tab.evaluate(() => location.replace('about:blank')),
  ]);
  await tab.evaluate(() => sessionStorage.clear());
  await context.clearCookies();
  const debugging = await context.newCDPSession(tab);
  await debugging.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
  await debugging.detach();
  return true;
}

/** Returns the titles that the list shows, from top to bottom. */
export const titlesOf = (page: Page): Promise<string[]> =>
  page.locator('.rows > li .title').allTextContents();
