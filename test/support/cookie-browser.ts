import type { Person, TestProvider } from './provider.ts';

/** One response that a browser saw. */
export interface Visit {
  url: URL;
  status: number;
  headers: Headers;
  text: string;
}

/**
 * A browser without scripts. It keeps cookies, follows redirects and sends forms. It sends each cookie to every server:
 * the servers of a test listen on different ports of one host, and browsers share cookies between the ports of a host.
 */
export class CookieBrowser {
  readonly cookies = new Map<string, string>();
  /**
   * The values of the cookies that must stay secret. `signed-in` is not secret, because it only says that a session
   * exists.
   */
  get secrets(): string[] {
    return [...this.cookies].filter(([name]) => name !== 'signed-in').map(([, value]) => value);
  }

  /** All addresses that the browser has requested, in order. */
  readonly trail: string[] = [];

  /** Opens an address without following redirects. */
  async open(address: string | URL, options: RequestInit = {}): Promise<Visit> {
    const url = new URL(address);
    this.trail.push(url.href);
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      redirect: 'manual',
      ...options,
      headers: { ...(cookie && { cookie }), ...(options.headers as Record<string, string>) },
    });
    for (const set of response.headers.getSetCookie()) this.#keep(set);
    return { url, status: response.status, headers: response.headers, text: await response.text() };
  }

  /** Opens an address and follows redirects. Stops before an address that `stopAt` accepts. */
  async visit(address: string | URL, stopAt: (url: URL) => boolean = () => false): Promise<Visit> {
    let visit = await this.open(address);
    for (;;) {
      const to = visit.headers.get('location');
      if (to === null) return visit;
      const next = new URL(to, visit.url);
      if (stopAt(next)) return visit;
      visit = await this.open(next);
    }
  }

  /** Sends JSON to an address, as a script on a page of the same origin would. */
  async post(address: string, body: unknown, headers: Record<string, string> = {}): Promise<Visit> {
    const { origin } = new URL(address);
    return this.open(address, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', origin, ...headers },
    });
  }

  #keep(text: string): void {
    const [pair = '', ...attributes] = text.split('; ');
    const [name = '', ...value] = pair.split('=');
    const isGone = attributes.some((each) => /^(max-age=0|expires=Thu, 01 Jan 1970)/i.test(each));
    if (isGone) this.cookies.delete(name);
    else this.cookies.set(name, value.join('='));
  }
}

export const isCallback = (url: URL): boolean => url.pathname === '/login/callback';

/**
 * Goes to `address` and signs in as `subject` if the provider asks. Stops before it opens the callback, and returns the
 * callback's address. Returns the last page instead if the sign-in ends earlier.
 */
export async function goToCallback(
  browser: CookieBrowser,
  address: string,
  subject: string,
): Promise<{ callback?: URL; page?: Visit }> {
  let visit = await browser.visit(address, isCallback);
  if (visit.url.pathname.startsWith('/interaction/')) {
    const answered = await browser.open(visit.url, {
      method: 'POST',
      body: new URLSearchParams({ login: subject }),
    });
    visit = await browser.visit(new URL(answered.headers.get('location')!, visit.url), isCallback);
  }
  const to = visit.headers.get('location');
  return to === null ? { page: visit } : { callback: new URL(to, visit.url) };
}

/** Signs in. Returns the page that the user sees at the end. */
export async function signIn(browser: CookieBrowser, address: string, subject: string): Promise<Visit> {
  const { callback, page } = await goToCallback(browser, address, subject);
  return callback === undefined ? page! : browser.open(callback);
}

let people = 0;

/** Adds a person with a new address to a provider. Returns the person's subject. */
export function addPerson(provider: TestProvider, person: Person = {}): string {
  const subject = `person-${++people}`;
  provider.people.set(subject, {
    email: `${subject}-${process.pid}@example.org`,
    email_verified: true,
    ...person,
  });
  return subject;
}
