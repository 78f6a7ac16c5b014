import { type ApiResponse, readResponse } from './responses.ts';

/** A browser as the service sees it. It keeps the session's cookie, and sends the origin of its page. */
export interface TestBrowser {
  /** The session cookie that the browser sends, as `name=value`. */
  cookie: string | undefined;
  /** Sends a request as a page does. `headers` override the browser's own. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>;
  /** Logs in with an invite. Rejects if the service refuses the invite. */
  login(code: string): Promise<ApiResponse>;
  /** Logs in with a code from another device. */
  loginByDevice(code: string): Promise<ApiResponse>;
}

/**
 * Returns the `Set-Cookie` header with which a response sets or deletes the session cookie. Throws unless the response
 * does the same with the cookie `signed-in`, which tells the page's scripts whether there is a session.
 */
export function setCookieOf({ headers }: ApiResponse): string {
  const [cookie, hint, ...others] = headers.getSetCookie();
  if (cookie === undefined || others.length > 0) throw new Error(`sets ${others.length + 2} cookies`);
  const isSet = !cookie.includes('Max-Age=0');
  if (!hint?.startsWith(`signed-in=${isSet ? '1' : ''}; Path=/; SameSite=Lax`))
    throw new Error(`sets ${hint}`);
  return cookie;
}

/** Opens a browser without a session. `pageOrigin` is the origin of its page. The service listens at `origin`. */
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
      // An empty value deletes the cookie.
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
    loginByDevice: (code) => browser.post('/web/login/device/exchange', { code }),
  };
  return browser;
}
