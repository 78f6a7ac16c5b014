import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { browserTest, useBrowser } from './support/browser.ts';
import { addPerson } from './support/cookie-browser.ts';
import { useSignIn } from './support/sign-in.ts';

// Tests that a user can sign in through a provider and authorise an app, with the page's own scripts and security
// policy.

const bench = useSignIn();
const browsers = useBrowser();

const VERIFIER = 'v'.repeat(64);

/** Adds a person to the provider. `choose` clicks the person's email address there, which signs the person in. */
function makePerson() {
  const subject = addPerson(bench.provider);
  const email = bench.provider.people.get(subject)!.email!;
  return { email, choose: (page: Page) => page.getByRole('button', { name: email }).click() };
}

/** Starts an app on this computer. The app waits for its code. */
async function startApp() {
  const received: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://127.0.0.1');
    if (pathname === '/signed-in') received.push(searchParams);
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<title>App</title><h1>Back in the app</h1>');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/signed-in`;
  const path = `/login/app?${new URLSearchParams({
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    state: 'the-state-of-the-app',
    name: 'An <i>app</i>',
  })}`;
  return { received, redirectUri, path };
}

browserTest('signing in leads from the page to the provider, and back to the list', async () => {
  const visitor = await browsers.visitor(bench.service);
  const { email, choose } = makePerson();
  const page = await visitor.open('/');
  await page.getByRole('link', { name: 'Continue with Test Accounts' }).click();
  await choose(page);
  await page.getByRole('heading', { name: 'Bookmarks', exact: true }).waitFor();
  expect(page.url()).toBe(`${bench.service.origin}/`);
  expect(await visitor.post('/web/api/v1/user/profile')).toMatchObject({ email });
  expect(visitor.faults).toEqual([]);
});

browserTest('an app gets its code only after a click on a page that names the app', async () => {
  const visitor = await browsers.visitor(bench.service);
  const { email, choose } = makePerson();
  const { received, redirectUri, path } = await startApp();
  const page = await visitor.open(path);
  await page.getByRole('link', { name: 'Continue with Test Accounts' }).click();
  await choose(page);
  await page.getByRole('heading', { name: 'An <i>app</i>' }).waitFor();
  expect(await page.getByText(email).count()).toBe(1);
  expect(received).toEqual([]);

  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'Back in the app' }).waitFor();
  expect(received.map((each) => each.get('state'))).toEqual(['the-state-of-the-app']);
  const exchange = { code: received[0]!.get('code'), code_verifier: VERIFIER, redirect_uri: redirectUri };
  const { status, body } = await bench.service.post('/auth/exchange', exchange);
  expect([status, body.user?.email]).toEqual([200, email]);
  expect(visitor.faults).toEqual([]);
});

browserTest('a user can decline, and the app gets an error', async () => {
  const visitor = await browsers.visitor(bench.service);
  const { choose } = makePerson();
  const { received, path } = await startApp();
  const page = await visitor.open(path);
  await page.getByRole('link', { name: 'Continue with Test Accounts' }).click();
  await choose(page);
  await page.getByRole('link', { name: 'Decline' }).click();
  await page.getByRole('heading', { name: 'Back in the app' }).waitFor();
  expect(received.map((each) => [each.get('code'), each.get('error')])).toEqual([[null, 'access_denied']]);
});

browserTest(
  'a token is created only within 15 minutes of a sign-in, and the page offers to sign in again',
  async () => {
    const visitor = await browsers.visitor(bench.service);
    const { choose } = makePerson();
    const page = await visitor.open('/settings');
    await page.getByRole('link', { name: 'Continue with Test Accounts' }).click();
    await choose(page);
    await page.getByLabel('Name', { exact: true }).waitFor();
    await bench.service.context.database.write(
      (sql) => sql`update tokens set authenticated_at = authenticated_at - interval '16 minutes'`,
    );
    const create = async () => {
      await page.getByLabel('Name', { exact: true }).fill('script');
      await page.getByRole('button', { name: 'Create token' }).click();
    };
    await create();
    const opened = visitor.context.waitForEvent('page');
    await page.getByRole('link', { name: 'Confirm that it is you' }).click();
    const newTab = await opened;
    await newTab.getByLabel('Name', { exact: true }).waitFor();
    await create();
    await expect
      .poll(() => page.getByRole('textbox', { name: 'Token script' }).inputValue())
      .toMatch(/^bka_/);
  },
);
