import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CookieBrowser, signIn } from './support/cookie-browser.ts';
import { createDatabase } from './support/database.ts';
import { findFreePort } from './support/ports.ts';
import { noteProcess } from './support/processes.ts';
import { runDir } from './support/run.ts';
import { until } from './support/until.ts';

const DEMO = join(import.meta.dirname, 'demo/oidc.ts');

test('npm run demo:oidc prints the address to open and the person to choose, and SIGTERM ends both processes', async () => {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const port = await findFreePort();
  const env = { PATH: process.env.PATH, PORT: String(port), DATABASE_URL: url, LOG_LEVEL: 'silent' };
  const demo = spawn(process.execPath, [DEMO], { env, cwd: join(import.meta.dirname, '..') });
  noteProcess(runDir(), demo.pid!);
  let printed = '';
  demo.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await until(() => /choose \S+/.test(printed));
  const [, address, email] = /open (\S+) and choose (\S+)/.exec(printed)!;
  const isUp = () =>
    fetch(new URL('/readyz', address)).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isUp);
  const browser = new CookieBrowser();
  // On a slow machine, the provider may respond too late at first. The service's page then says to try again.
  await until(async () => {
    const { status } = await signIn(browser, address!, email!.split('@')[0]!);
    expect([303, 503]).toContain(status);
    return status === 303;
  });
  const profile = await browser.post(new URL('/web/api/v1/user/profile', address).href, {});
  expect(JSON.parse(profile.text)).toMatchObject({ email });
  const ended = once(demo, 'exit');
  demo.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(await isUp()).toBe(false);
});
