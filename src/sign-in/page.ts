import { hash } from 'node:crypto';
import { Html, html } from './html.ts';

/** The layout and the headers of the sign-in pages. */

/** A page with its status. */
export interface Page {
  status: number;
  title: string;
  body: Html;
  /** Whether the page contains `SCRIPT`, which sends the page's forms as JSON. */
  isActive?: boolean;
  retryAfterSeconds?: number;
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; padding: 2rem 1rem; }
main { max-width: 30rem; margin: 0 auto; }
h1 { font-size: 1.5rem; line-height: 1.25; }
.facts { overflow-wrap: anywhere; }
.choices { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0; }
a.button, button { display: inline-block; padding: .6rem 1.1rem; border: 1px solid; border-radius: .4rem; font: inherit; color: inherit; background: none; text-decoration: none; cursor: pointer; }
a.button:focus-visible, button:focus-visible, input:focus-visible { outline: 3px solid; outline-offset: 2px; }
button.main, a.main { color: Canvas; background: CanvasText; border-color: CanvasText; }
button[disabled] { opacity: .5; cursor: default; }
label { display: block; font-weight: 600; }
input { font: inherit; padding: .5rem; width: 12ch; letter-spacing: .1em; text-transform: uppercase; }
[role=alert] { font-weight: 600; }
`;

/**
 * The script of the pages. It sends each form as JSON to the path in `data-to`. Then it goes to the `location` in the
 * response, or reloads the page if there is none.
 */
const SCRIPT = `
const post = async (path, body) => {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const result = await response.json();
  if (!response.ok) throw new Error(result.error);
  return result;
};
const usePasskey = async () => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post('/web/login/passkey/options', {}));
  const { id, response } = (await navigator.credentials.get({ publicKey })).toJSON();
  return {
    credential_id: id,
    client_data: response.clientDataJSON,
    authenticator_data: response.authenticatorData,
    signature: response.signature,
    user_handle: response.userHandle,
  };
};
const hasPasskeys =
  !/^\\[|^[\\d.]+$/.test(location.hostname) && !!self.PublicKeyCredential?.parseRequestOptionsFromJSON;
for (const form of document.forms) {
  if (form.hidden) form.hidden = !hasPasskeys;
  const button = form.querySelector('button');
  const fault = form.querySelector('[role=alert]');
  button.disabled = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    fault.textContent = '';
    try {
      const body = form.dataset.body ? JSON.parse(form.dataset.body) : await usePasskey();
      for (const { name, value } of form.querySelectorAll('input'))
        body[name] = value.replace(/[\\s-]/g, '').toUpperCase();
      const isDeviceCode = body.code?.length === 12;
      const result = await post(isDeviceCode ? form.dataset.toDevice : form.dataset.to, body);
      if (result.location) location.replace(result.location);
      else location.reload();
    } catch (error) {
      fault.textContent = 'That did not work: ' + error.message + '.';
      button.disabled = false;
    }
  });
}
`;

const hashSource = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`;

/**
 * Returns the Content-Security-Policy of a page. It allows only `STYLE` and, on an active page, `SCRIPT` with its
 * requests to this site. `form-action` is `'none'`, because `SCRIPT` sends the forms. If the browser itself sent them,
 * `form-action` would have to allow the address that the response redirects to, which may be any app's address.
 */
const policy = (isActive: boolean): string =>
  [
    "default-src 'none'",
    `style-src ${hashSource(STYLE)}`,
    ...(isActive ? [`script-src ${hashSource(SCRIPT)}`, "connect-src 'self'"] : []),
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');

/** Returns the headers of a page, in addition to those of every response. */
export const pageHeaders = ({ isActive = false, retryAfterSeconds }: Page): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy(isActive),
  'cross-origin-opener-policy': 'same-origin',
  ...PRIVATE_HEADERS,
  ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
});

/** The headers of every sign-in response. Redirects have them too, because their addresses can contain codes. */
export const PRIVATE_HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
} as const;

/** Returns the page's whole HTML document. */
export const renderPage = ({ title, body, isActive = false }: Page): string =>
  html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} · Bookmark Service</title>
    <style>${new Html(STYLE)}</style>
  </head>
  <body>
    <main>
      <h1>${title}</h1>
      ${body}
    </main>
    ${isActive ? new Html(`<script>${SCRIPT}</script>`) : undefined}
  </body>
</html>
`.text;
