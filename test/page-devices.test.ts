import { expect } from 'vitest';
import { browserTest, useBrowser } from './support/browser.ts';
import { useService } from './support/service.ts';

// Tests that a user can sign in on another device, and is warned before a sign-out that would lock them out.

const service = useService();
const browsers = useBrowser();

browserTest('the page shows a code that signs in another device, and a link with the same code', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open('/settings');
  await page.getByRole('button', { name: 'Sign in another device' }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in another device' });
  await dialog.getByRole('img', { name: 'QR code of the link' }).waitFor();
  const link = await dialog.getByRole('textbox', { name: 'Link' }).inputValue();
  const shown = await dialog.getByText(/^[A-Z2-9]{4}-[A-Z2-9]{4}-[A-Z2-9]{4}$/).textContent();
  expect(link).toBe(`${service.origin}/#code=${shown!.replaceAll('-', '')}`);
  // On the phone, the user types the code with its hyphens, but in lower case.
  const phone = await browsers.visitor(service, { width: 360, height: 700 });
  const phonePage = await phone.open('/');
  await phonePage.getByLabel('Invite code').fill(shown!.toLowerCase());
  await phonePage.getByRole('button', { name: 'Sign in' }).click();
  await phonePage.getByText('No bookmarks yet').waitFor();
  expect(await phone.post('/web/api/v1/user/profile')).toMatchObject({ email: browser.email });
  await dialog.getByText('Signed in: Chrome on Linux.').waitFor();
  expect(await dialog.getByRole('textbox', { name: 'Link' }).count()).toBe(0);
  // The list shows the new session as soon as the dialog is closed.
  await page.keyboard.press('Escape');
  await expect.poll(() => page.locator('#sessions li').count()).toBe(2);
  await page.locator('#sessions li').getByText('Chrome on Linux').first().waitFor();
  expect([...browser.faults, ...phone.faults]).toEqual([]);
});

browserTest('a user who is signed in nowhere else is warned before signing out', async () => {
  const browser = await browsers.signedIn(service);
  const page = await browser.open();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  const warning = page.getByRole('dialog', { name: 'You may lose access' });
  await warning.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await warning.getByRole('button', { name: 'Sign in another device' }).click();
  const link = await page
    .getByRole('dialog', { name: 'Sign in another device' })
    .getByRole('textbox', { name: 'Link' })
    .inputValue();
  const other = await browsers.visitor(service);
  await (await other.open(new URL(link).pathname + new URL(link).hash))
    .getByText('No bookmarks yet')
    .waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await warning.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  // The user can still use the account in another session, so there is no warning.
  await page.getByLabel('Invite code').waitFor();
  expect(await browser.post('/web/api/v1/user/profile')).toMatchObject({ code: 'INVALID_TOKEN' });
  expect(browser.faults).toEqual([]);
});
