import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserTest, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';
import { newEmail } from './support/users.ts';

// Tests of passkeys with Chromium's virtual authenticator. `passkeys.test.ts` covers hostile responses.

const service = useService();
const browsers = useBrowser();

/** Returns the service's address with a host name, because a passkey cannot belong to an IP address. */
const named = () => service.origin.replace('127.0.0.1', 'localhost');

/** Adds an authenticator with a fingerprint sensor, whose owner always agrees. */
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

browserTest('the page offers a passkey, which signs in another browser and can be replaced', async () => {
  const browser = await browsers.visitor(service);
  const code = await service.invite(newEmail());
  const page = await browser.open('/', named());
  const first = await addAuthenticator(page);
  await page.getByLabel('Invite code').fill(code);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  const question = page.getByRole('dialog', { name: 'Add a passkey' });
  await question.getByLabel('Name of the passkey').fill('My laptop');
  await question.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('Passkey added').waitFor();
  const { credentials } = await first.cdp.send('WebAuthn.getCredentials', first);
  expect(credentials).toHaveLength(1);

  // Another browser has the same passkey, as if the passkey were synchronised.
  const other = await browsers.visitor(service, { isFresh: true });
  const otherPage = await other.open('/', named());
  const second = await addAuthenticator(otherPage);
  await second.cdp.send('WebAuthn.addCredential', { ...second, credential: credentials[0]! });
  await otherPage.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await otherPage.getByText('No bookmarks yet').waitFor();

  // A user's only passkey cannot be removed. A user with a passkey can sign out without a warning.
  await otherPage.goto(`${named()}/settings`);
  await otherPage.locator('#passkeys li').getByText('My laptop').waitFor();
  await otherPage.getByRole('button', { name: 'Remove passkey' }).click();
  await otherPage.getByRole('alert').getByText('Add another passkey first').waitFor();
  // The authenticator has this passkey already, and the page says so.
  const addAnother = async () => {
    await otherPage.getByRole('button', { name: 'Add a passkey' }).click();
    await otherPage.getByRole('dialog').getByRole('button', { name: 'Add a passkey' }).click();
  };
  await addAnother();
  await otherPage.getByRole('alert').getByText('this device already has one for your account').waitFor();
  await second.cdp.send('WebAuthn.clearCredentials', second);
  await addAnother();
  await expect.poll(() => otherPage.locator('#passkeys li').count()).toBe(2);
  await otherPage.getByRole('button', { name: 'Remove passkey' }).first().click();
  await expect.poll(() => otherPage.locator('#passkeys li').count()).toBe(1);
  await otherPage.getByRole('button', { name: 'Sign out', exact: true }).first().click();
  await otherPage.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();

  // `bookmarks login` opens an address with `return_to`. After the sign-in, the browser opens the page in `return_to`.
  await otherPage.goto(`${named()}/login?return_to=/settings`);
  await otherPage.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await otherPage.getByRole('heading', { name: 'Passkeys' }).waitFor();
  expect([...browser.faults, ...other.faults]).toEqual([]);
});

browserTest('at an IP address there are no passkeys, and the settings say why', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  await page.locator('#passkeys').getByText('this page has an IP address').waitFor();
  expect(await page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0);
  await page.locator('#passkeys').getByRole('link').click();
  await page.waitForURL(`${named()}/settings`);
  const visitor = await browsers.visitor(service);
  const otherPage = await visitor.open();
  await otherPage.getByLabel('Invite code').waitFor();
  expect(await otherPage.getByRole('button', { name: 'Sign in with a passkey' }).count()).toBe(0);
});
