import { type ApiResponse, readResponse } from './responses.ts';

/** A browser as far as the service sees it: it keeps the session's cookie, and names the origin of its page. */
export interface TestBrowser {
  /** The cookie that it sends: name and value. */
  cookie: string | undefined;
  /** Sends a request of a page; `headers` stand in the place of the browser's own. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>;
  /** Logs in by an invite; rejects where the service refuses it. */
  login(code: string): Promise<ApiResponse>;
}

/** The session's cookie that a response sets, always with the one that says so to the page's scripts. */
export function setCookieOf({ headers }: ApiResponse): string {
  const [cookie, hint, ...others] = headers.getSetCookie();
  if (cookie === undefined || others.length > 0) throw new Error(`sets ${others.length + 2} cookies`);
  const isSet = !cookie.includes('Max-Age=0');
  if (!hint?.startsWith(`signed-in=${isSet ? '1' : ''}; Path=/; SameSite=Lax`))
    throw new Error(`sets ${hint}`);
  return cookie;
}

/** A browser without a session. `pageOrigin` is where its page comes from; `origin` is where the service listens. */
export function newBrowser(origin: string, pageOrigin = origin): TestBrowser {
  const browser: TestBrowser = {
    cookie: undefined,
    async post(path, body = {}, headers = {}) {
      const sent = await fetch(origin + path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: {
          'content-type': 'application/json',
          origin: pageOrigin,
          ...(browser.cookie !== undefined && { cookie: browser.cookie }),
          ...headers,
        },
      });
      const response = await readResponse(sent);
      const [pair, value] = /^[^=]+=([^;]*)/.exec(response.headers.getSetCookie()[0] ?? '') ?? [];
      if (pair !== undefined && headers.cookie === undefined)
        browser.cookie = value === '' ? undefined : pair;
      return response;
    },
    async login(code) {
      const response = await browser.post('/web/login/invite', { code });
      if (response.status !== 200) throw new Error(`login: ${response.text}`);
      return response;
    },
  };
  return browser;
}
