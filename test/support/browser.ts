import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, test } from 'vitest';
import { findProgram } from './programs.ts';
import type { TestService } from './service.ts';
import { newEmail } from './users.ts';

/** This machine's browser. `CHROMIUM` names another one. */
const EXECUTABLE = process.env.CHROMIUM ?? findProgram('headlessChromium');

/** A test that needs a browser. Without one it is skipped, and the end of the run says so. In CI that is a failure. */
export const browserTest = EXECUTABLE === undefined ? test.skip : test;

/** Properties of the reader's browser. */
export interface ReaderOptions {
  width?: number;
  height?: number;
  reducedMotion?: boolean;
  locale?: string;
}

/** One person's browser, with its own cookies and any number of tabs. */
export interface Reader {
  readonly context: BrowserContext;
  readonly email: string;
  /** Opens a tab. */
  open(path?: string, origin?: string): Promise<Page>;
  /** What went wrong in its tabs: errors, and violations of the security policy. */
  readonly faults: string[];
  /** Sends a request as this browser's page does. */
  post(path: string, body?: unknown): Promise<unknown>;
}

export interface Browsers {
  /** A browser without a session. */
  visitor(service: TestService, options?: ReaderOptions): Promise<Reader>;
  /** A browser that is signed in as a new user, or as the user with this address. */
  reader(service: TestService, options?: ReaderOptions & { email?: string }): Promise<Reader>;
}

/** The browser for all tests of a file. Everything that a test opens in it is closed after the test. */
export function useBrowser(): Browsers {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (EXECUTABLE === undefined) return;
    browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const context of browser?.contexts() ?? []) await context.close();
  });

  const visitor: Browsers['visitor'] = async (service, options = {}) => {
    const { width = 1_200, height = 800, reducedMotion = false, locale = 'en-GB' } = options;
    const context = await browser!.newContext({
      colorScheme: 'light',
      viewport: { width, height },
      reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
      locale,
    });
    context.setDefaultTimeout(20_000);
    const faults: string[] = [];
    context.on('weberror', (error) => faults.push(String(error.error().stack)));
    context.on('console', (message) => {
      // The browser reports every 401. Some tests expect them.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        faults.push(message.text());
    });
    return {
      context,
      email: '',
      faults,
      async open(path = '/', origin = service.origin) {
        const page = await context.newPage();
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
    async reader(service, { email = newEmail(), ...options } = {}) {
      const reader = await visitor(service, options);
      await reader.post('/web/login/invite', { code: await service.invite(email) });
      return { ...reader, email };
    },
  };
}

/** The titles that the list shows, from top to bottom. */
export const titlesOf = (page: Page): Promise<string[]> =>
  page.locator('.rows > li .title').allTextContents();
