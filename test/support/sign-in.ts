import { afterAll, beforeAll } from 'vitest';
import type { Config } from '../../src/config.ts';
import type { ProviderSettings, SignUp } from '../../src/sign-in/variables.ts';
import { addPerson, CookieBrowser, signIn, type Visit } from './cookie-browser.ts';
import { createDatabase } from './database.ts';
import { type Person, type ProviderOptions, startProvider, type TestProvider } from './provider.ts';
import { startService, type TestService } from './service.ts';

/** The settings in which services with the same provider can differ. */
export interface SignInOptions {
  signUp?: SignUp;
  provider?: Partial<ProviderSettings>;
  appRedirects?: readonly string[];
  config?: Partial<Config>;
}

/** A provider, and services that share this provider and a database. */
export interface SignInBench {
  provider: TestProvider;
  /**
   * The service with the options of `useSignIn`. By default, everybody with a verified address gets an account, and the
   * provider's addresses are trusted.
   */
  service: TestService;
  /** Starts another service with other options. */
  beside(options: SignInOptions): Promise<TestService>;
}

const settingsOf = (provider: TestProvider, options: SignInOptions): Partial<Config> => ({
  signIn: {
    provider: provider.settings(options.provider),
    signUp: options.signUp ?? 'invite',
    appRedirects: options.appRedirects ?? [],
  },
  ...options.config,
});

const OPEN: SignInOptions = { signUp: 'open', provider: { trustEmail: true } };

/**
 * Starts a service and its provider before the first test of a file or `describe` block, and ends them after the last.
 */
export function useSignIn(options: SignInOptions = OPEN, providerOptions: ProviderOptions = {}): SignInBench {
  const bench = {} as SignInBench;
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    const database = opened.use(await createDatabase());
    bench.provider = opened.use(await startProvider(providerOptions));
    bench.beside = async (other) =>
      opened.use(await startService(settingsOf(bench.provider, other), { database }));
    bench.service = await bench.beside(options);
  });
  afterAll(() => opened.disposeAsync());
  return bench;
}

/** The result of a person's login in a browser. */
export interface Arrival {
  browser: CookieBrowser;
  visit: Visit;
  subject: string;
  /** The e-mail address of the account to which the browser is signed in. Undefined if it is signed out. */
  email: string | undefined;
}

/** Signs in a person, by default in a new browser. If `person` is not a subject, adds the person to the provider. */
export async function arrive(
  { provider }: SignInBench,
  service: TestService,
  person: Person | string = {},
  query = '',
  browser = new CookieBrowser(),
): Promise<Arrival> {
  const subject = typeof person === 'string' ? person : addPerson(provider, person);
  const visit = await signIn(browser, `${service.origin}/login${query}`, subject);
  return { browser, visit, subject, email: await whoIs(browser, service) };
}

/** Returns the e-mail address of the account to which a browser is signed in, or undefined if it is signed out. */
export async function whoIs(browser: CookieBrowser, service: TestService): Promise<string | undefined> {
  const { status, text } = await browser.post(`${service.origin}/web/api/v1/user/profile`, {});
  return status === 200 ? JSON.parse(text).email : undefined;
}

/** Returns the heading of a page. */
export const headingOf = ({ text }: Visit): string | undefined =>
  /<h1>(.*?)<\/h1>/s.exec(text)?.[1]?.replaceAll('&#39;', "'");
