import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { runCommand } from './support/cli.ts';
import { CookieBrowser } from './support/cookie-browser.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { runDir } from './support/run.ts';
import { useService } from './support/service.ts';
import { until } from './support/until.ts';

// Tests `bookmarks login`. The command opens a browser, uses PKCE, and receives the authorization code through a
// redirect to a port of this computer.

const service = useService();

/** Prepares the environment of `bookmarks login`. Its browser is a script that only records the address to open. */
function prepareLogin() {
  const folder = makeFolder('cli-login', runDir());
  onTestFinished(() => removeFolder(folder));
  const [program, shown] = [join(folder, 'browser'), join(folder, 'shown')];
  writeFileSync(program, `#!/bin/sh\nprintf %s "$1" > '${shown}.part' && mv '${shown}.part' '${shown}'\n`);
  chmodSync(program, 0o755);
  const env = {
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
    BOOKMARKS_URL: service.origin,
    BROWSER: program,
  };
  return {
    env,
    login: (signal?: AbortSignal, onErrorOutput?: (err: string) => void) =>
      runCommand(['login'], {
        ...{ env, screen: 100 },
        ...(signal && { signal }),
        ...(onErrorOutput && { onErrorOutput }),
      }),
    /** Returns the address that the browser should open. */
    async shown(): Promise<URL> {
      await until(async () => existsSync(shown));
      return new URL(readFileSync(shown, 'utf8'));
    },
  };
}

/** Returns the status of a request for exactly this path. `fetch` would normalize the path. */
const askPort = (port: number, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path }, (response) => resolve(response.resume().statusCode)).on(
      'error',
      reject,
    );
  });

/**
 * Opens the address as a signed-in person and approves the request. Returns the address to which the browser goes next.
 */
async function approve(address: URL, email: string): Promise<URL> {
  const browser = new CookieBrowser();
  await browser.post(`${service.origin}/web/login/invite`, { code: await service.invite(email) });
  const page = await browser.open(address);
  expect(page.status).toBe(200);
  const { text } = await browser.post(
    `${service.origin}/web/login/app`,
    Object.fromEntries(address.searchParams),
  );
  return new URL(JSON.parse(text).location);
}

afterEach(() => expect(process.exitCode).toBeUndefined());

test('the user ends up logged in, and the settings list the command line as an app', async () => {
  const { login, shown, env } = prepareLogin();
  const ended = login();
  const address = await shown();
  expect(address.searchParams.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/signed-in$/);
  const back = await fetch(await approve(address, 'cli@example.org'));
  expect([back.status, await back.text()]).toEqual([
    200,
    'You are logged in on the command line. You may close this window.\n',
  ]);
  expect(back.headers.get('referrer-policy')).toBe('no-referrer');
  expect(await ended).toMatchObject({
    code: 0,
    out: `Logged in as cli@example.org at ${service.origin}/api/v1\n`,
  });
  expect((await runCommand(['whoami'], { env })).out).toContain('cli@example.org');
  const { sql } = service.context.database;
  const [session] = await sql<{ app_name: string; client: string }[]>`
    select app_name, client from tokens where app_name is not null`;
  expect(session!.app_name).toMatch(/^bookmarks on /);
  expect(session!.client).toBe('Bookmarks CLI');
});

test('login prints the address, in case no browser opens', async () => {
  const { login, env } = prepareLogin();
  const stop = new AbortController();
  const address = `${service.origin}/login/app?redirect_uri=http%3A%2F%2F127.0.0.1%3A`;
  Object.assign(env, { BROWSER: '/no/such/browser' });
  // If the address were not printed, the command and this test would wait forever.
  const ended = login(stop.signal, (err) => err.includes(address) && stop.abort());
  expect((await ended).code).not.toBe(0);
});

test('login reports that the person declined', async () => {
  const { login, shown } = prepareLogin();
  const ended = login();
  const { searchParams } = await shown();
  const query = { error: 'access_denied', state: searchParams.get('state')!, iss: service.origin };
  await fetch(`${searchParams.get('redirect_uri')}?${new URLSearchParams(query)}`);
  const { code, err } = await ended;
  expect([code === 0, err]).toEqual([false, expect.stringContaining('declined in the browser')]);
});

test.each(['127.0.0.1', 'localhost'])(
  'login at %s works, whichever name of this computer the page has; the token goes to exactly this address',
  async (host) => {
    const { login, shown, env } = prepareLogin();
    const { port } = new URL(service.origin);
    env.BOOKMARKS_URL = `http://${host}:${port}`;
    const ended = login();
    const address = await shown();
    expect(address.hostname).toBe(host);
    const back = await approve(new URL(address.href.replace(host, '127.0.0.1')), 'names@example.org');
    for (const issuer of [`http://localhost:${port}1`, `http://localhost.evil.example:${port}`, '']) {
      const other = prepareLogin();
      other.env.BOOKMARKS_URL = env.BOOKMARKS_URL;
      const refused = other.login();
      const { searchParams } = await other.shown();
      const query = { code: 'x'.repeat(43), state: searchParams.get('state')!, iss: issuer };
      await fetch(`${searchParams.get('redirect_uri')}?${new URLSearchParams(query)}`);
      expect((await refused).err).toContain(`not at http://${host}:${port}`);
    }
    back.searchParams.set('iss', `http://${host === 'localhost' ? '127.0.0.1' : 'localhost'}:${port}`);
    expect((await fetch(back)).status).toBe(200);
    const base = `http://${host}:${port}/api/v1`;
    expect(await ended).toMatchObject({ code: 0, out: `Logged in as names@example.org at ${base}\n` });
    const whoami = (url: string) => runCommand(['whoami', '--url', url], { env });
    expect((await whoami(base)).code).toBe(0);
    const otherName = host === 'localhost' ? '127.0.0.1' : 'localhost';
    expect(await whoami(base.replace(host, otherName))).toMatchObject({ code: 4 });
  },
);

test("requests without the login's state, and from another service, do not end the login", async () => {
  const { login, shown } = prepareLogin();
  const ended = login();
  const address = await shown();
  const redirect = address.searchParams.get('redirect_uri')!;
  for (const query of ['', '?code=x', '?code=x&state=wrong', '?error=access_denied&state=wrong'])
    expect((await fetch(redirect + query)).status).toBe(404);
  expect((await fetch(redirect, { method: 'POST' })).status).toBe(404);
  const { port } = new URL(redirect);
  for (const path of ['//', '/\\\\', '//[', '*', 'http://['])
    expect(await askPort(Number(port), path)).toBe(404);
  const to = await approve(address, 'state@example.org');
  expect((await fetch(to)).status).toBe(200);
  expect((await ended).code).toBe(0);

  const other = prepareLogin();
  const refused = other.login();
  const { searchParams } = await other.shown();
  const mixed = { code: 'x'.repeat(43), state: searchParams.get('state')!, iss: 'https://evil.example' };
  expect((await fetch(`${searchParams.get('redirect_uri')}?${new URLSearchParams(mixed)}`)).status).toBe(400);
  expect((await refused).err).toContain('https://evil.example');
});
