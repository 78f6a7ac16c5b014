import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserTest, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// A person uses passkeys, with Chromium's virtual authenticator. `passkeys.test.ts` covers hostile responses.

const service = useService();
const browsers = useBrowser();

const named = () => service.origin.replace('127.0.0.1', 'localhost');

/** A device with a fingerprint reader whose owner always agrees. */
async function addAuthenticator(page: Page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { cdp, authenticatorId };
}

browserTest('a passkey is offered, signs in elsewhere, and can be replaced', async () => {
  const reader = await browsers.visitor(service);
  const code = await service.invite(newEmail());
  const page = await reader.open('/', named());
  const first = await addAuthenticator(page);
  await page.getByLabel('Invite code').fill(code);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('Passkey added').waitFor();
  const { credentials } = await first.cdp.send('WebAuthn.getCredentials', first);
  expect(credentials).toHaveLength(1);

  // Another browser with the same passkey, as in browsers that synchronise.
  const other = await browsers.visitor(service, { isFresh: true });
  const there = await other.open('/', named());
  const second = await addAuthenticator(there);
  await second.cdp.send('WebAuthn.addCredential', { ...second, credential: credentials[0]! });
  await there.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await there.getByText('No bookmarks yet').waitFor();

  // The last passkey stays. Its owner gets no warning.
  await there.goto(`${named()}/settings`);
  await there.locator('#passkeys li').getByText('Chrome on Linux').waitFor();
  await there.getByRole('button', { name: 'Remove passkey' }).click();
  await there.getByRole('alert').getByText('Add another passkey first').waitFor();
  await second.cdp.send('WebAuthn.clearCredentials', second);
  await there.getByRole('button', { name: 'Add a passkey' }).click();
  await expect.poll(() => there.locator('#passkeys li').count()).toBe(2);
  await there.getByRole('button', { name: 'Remove passkey' }).first().click();
  await expect.poll(() => there.locator('#passkeys li').count()).toBe(1);
  await there.getByRole('button', { name: 'Sign out', exact: true }).first().click();
  await there.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();

  // The page that `bookmarks login` opens leads on to where it should.
  await there.goto(`${named()}/login?return_to=/settings`);
  await there.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await there.getByRole('heading', { name: 'Passkeys' }).waitFor();
  expect([...reader.faults, ...other.faults]).toEqual([]);
});

browserTest('an address without a name has no passkeys, and the page says why', async () => {
  const reader = await browsers.reader(service);
  const page = await reader.open('/settings');
  await page.locator('#passkeys').getByText('this page has an IP address').waitFor();
  expect(await page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0);
  const visitor = await browsers.visitor(service);
  const there = await visitor.open();
  await there.getByLabel('Invite code').waitFor();
  expect(await there.getByRole('button', { name: 'Sign in with a passkey' }).count()).toBe(0);
});
