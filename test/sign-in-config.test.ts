import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../src/config.ts';
import { isAllowedRedirect } from '../src/sign-in/app-redirects.ts';
import { messageFor } from './support/config-error.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { runDir } from './support/run.ts';

// Tests each variable that configures the sign-in, and the combinations of variables that are refused.

type Env = Record<string, string>;

const PROVIDER: Env = {
  OIDC_ISSUER: 'https://accounts.example.org',
  OIDC_CLIENT_ID: 'bookmarks',
  OIDC_CLIENT_SECRET: 'geheim',
};

const read = (env: Env) => readConfig({ ...PROVIDER, ...env }).signIn;

const without = (...names: string[]): Env =>
  Object.fromEntries(Object.entries(PROVIDER).filter(([name]) => !names.includes(name)));

describe('what is configured', () => {
  test('without a provider, nobody can sign in through one', () => {
    expect(readConfig({}).signIn).toEqual({ provider: undefined, signUp: 'invite', appRedirects: [] });
  });

  test('a provider with only the required variables has the safest defaults', () => {
    expect(read({})).toEqual({
      provider: {
        issuer: 'https://accounts.example.org',
        clientId: 'bookmarks',
        clientSecret: 'geheim',
        scopes: 'openid email',
        name: 'accounts.example.org',
        trustEmail: false,
        allowedDomains: [],
      },
      signUp: 'invite',
      appRedirects: [],
    });
  });

  test('the secret can be in a file, and a line break at its end is ignored', () => {
    const folder = makeFolder('secret', runDir());
    onTestFinished(() => removeFolder(folder));
    const [full, blank] = [join(folder, 'full'), join(folder, 'blank')];
    writeFileSync(full, 'from a file\n');
    writeFileSync(blank, '\n');
    const env = without('OIDC_CLIENT_SECRET');
    expect(readConfig({ ...env, OIDC_CLIENT_SECRET_FILE: full }).signIn.provider?.clientSecret).toBe(
      'from a file',
    );
    for (const file of [blank, join(folder, 'missing'), folder])
      expect(messageFor({ ...env, OIDC_CLIENT_SECRET_FILE: file })).toMatch(
        /^OIDC_CLIENT_SECRET_FILE: expected a file that contains the secret/,
      );
  });

  test('domains are compared in ASCII and lower case', () => {
    expect(read({ OIDC_ALLOWED_DOMAINS: ' Example.ORG, bücher.example ' }).provider?.allowedDomains).toEqual([
      'example.org',
      'xn--bcher-kva.example',
    ]);
  });
});

describe('each variable of signing in', () => {
  test.each([
    [
      'OIDC_ISSUER',
      ['https://a.example/tenant/', 'http://127.0.0.1:9000', 'http://localhost', 'http://[::1]:1'],
    ],
    ['OIDC_SCOPES', ['openid', 'openid email profile', 'email openid']],
    ['OIDC_NAME', ['Example & Sons', 'Büro 4']],
    ['OIDC_TRUST_EMAIL', ['true', 'false']],
    ['SIGN_UP', ['invite']],
    [
      'APP_REDIRECTS',
      ['https://a.example/cb', 'org.example.app:/cb', 'org.example.app://cb, https://a.example/'],
    ],
  ])('%s accepts %j', (name, taken) => {
    for (const text of taken) expect(() => read({ [name]: text })).not.toThrow();
  });

  test.each([
    [
      'OIDC_ISSUER',
      [
        'accounts.example.org',
        'http://accounts.example.org',
        'http://127.0.0.1.example.org',
        'https://a.example/?x=1',
        'https://a.example/#x',
        'https://user@a.example/',
        'ftp://a.example',
      ],
    ],
    ['OIDC_SCOPES', ['email', 'openid,email', 'openid  email', 'openidx']],
    ['OIDC_NAME', ['two\nlines', 'x'.repeat(61), 'turned \u202e round']],
    ['OIDC_TRUST_EMAIL', ['yes', '1']],
    ['OIDC_ALLOWED_DOMAINS', ['example', '*.example.org', '@example.org', 'a b.example', ',']],
    ['SIGN_UP', ['Open', 'closed']],
    [
      'APP_REDIRECTS',
      [
        'http://a.example/',
        'javascript:alert(1)',
        'data:text/html,x',
        'file:///etc/passwd',
        'app:/cb',
        'https://a.example/#x',
        'https://*.example/cb',
        'https://u@a.example/cb',
        'https://a.example',
        ',',
      ],
    ],
  ])('%s refuses %j', (name, refused) => {
    for (const text of refused)
      expect(messageFor({ ...PROVIDER, [name]: text })).toMatch(new RegExp(`^${name}: expected `));
  });

  test('an error message never contains the secret', () => {
    const message = messageFor({ ...PROVIDER, OIDC_CLIENT_SECRET: 'geheim\u0001' });
    expect(message).toMatch(/^OIDC_CLIENT_SECRET: expected /);
    expect(message).not.toContain('geheim');
  });
});

describe('a contradictory configuration is refused at the start', () => {
  test.each([
    [
      'a client without a provider',
      { OIDC_CLIENT_ID: 'x' },
      /^OIDC_ISSUER: required if OIDC_CLIENT_ID is set/,
    ],
    [
      'trust in addresses without a provider',
      { OIDC_TRUST_EMAIL: 'true' },
      /^OIDC_ISSUER: required if OIDC_TRUST_EMAIL is set/,
    ],
    ['sign-up without a provider', { SIGN_UP: 'open' }, /^OIDC_ISSUER: required if SIGN_UP=open/],
    [
      'a provider without a client',
      without('OIDC_CLIENT_ID'),
      /^OIDC_CLIENT_ID: required if OIDC_ISSUER is set/,
    ],
    [
      'a provider without a secret',
      without('OIDC_CLIENT_SECRET'),
      /^OIDC_CLIENT_SECRET: required if OIDC_ISSUER is set, or /,
    ],
    [
      'two secrets',
      { ...PROVIDER, OIDC_CLIENT_SECRET_FILE: new URL('../package.json', import.meta.url).pathname },
      /^OIDC_CLIENT_SECRET: set together with OIDC_CLIENT_SECRET_FILE/,
    ],
    [
      'accounts for addresses that are not trusted',
      { ...PROVIDER, SIGN_UP: 'open' },
      /^OIDC_TRUST_EMAIL: must be true if SIGN_UP=open/,
    ],
    [
      'trust in addresses without the scope email',
      { ...PROVIDER, OIDC_TRUST_EMAIL: 'true', OIDC_SCOPES: 'openid' },
      /^OIDC_SCOPES: must include email if/,
    ],
    [
      'domains of addresses without the scope email',
      { ...PROVIDER, OIDC_ALLOWED_DOMAINS: 'example.org', OIDC_SCOPES: 'openid' },
      /^OIDC_SCOPES: must include email if/,
    ],
    [
      'a provider without a public url',
      { ...PROVIDER, HOST: '0.0.0.0' },
      /^PUBLIC_URL: required if OIDC_ISSUER is set/,
    ],
  ])('%s', (_what, env, message) => {
    expect(messageFor(env as Env)).toMatch(message);
    expect(messageFor(env as Env)).toMatch(/; for example [A-Z_]+=.+$/);
  });

  test('a provider with trusted addresses may create accounts for everybody', () => {
    expect(read({ SIGN_UP: 'open', OIDC_TRUST_EMAIL: 'true' }).signUp).toBe('open');
  });
});

describe('a code for an app', () => {
  const CLAIMED = ['https://app.example.org/cb', 'org.example.app:/cb'];

  test.each([
    'http://127.0.0.1:1',
    'http://127.0.0.1:65535/',
    'http://127.0.0.1:8123/a/b%2F-_~',
    'http://[::1]:8123/cb',
    ...CLAIMED,
  ])('may be sent to %s', (redirect) => {
    expect(isAllowedRedirect(redirect, CLAIMED)).toBe(true);
  });

  test.each([
    'http://localhost:8123/cb',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:8123/cb?next=x',
    'http://127.0.0.1:8123/cb#x',
    'http://127.0.0.1:8123@evil.example/cb',
    'http://evil.example#127.0.0.1:8123',
    'http://127.0.0.1:8123\\@evil.example',
    'http://127.0.0.1.evil.example:80/cb',
    'http://127.0.0.2:8123/cb',
    'http://2130706433:8123/cb',
    'https://127.0.0.1:8123/cb',
    'HTTP://127.0.0.1:8123/cb',
    ' http://127.0.0.1:8123/cb',
    'http://127.0.0.1:8123/cb\n',
    'http://127.0.0.1:8123/c b',
    `http://127.0.0.1:8123/${'x'.repeat(500)}`,
    'http://[::ffff:127.0.0.1]:8123/cb',
    'https://app.example.org/cb/',
    'https://app.example.org/CB',
    'https://APP.example.org/cb',
    'https://app.example.org/cb?x',
    'org.example.app:/cb2',
    'javascript:alert(1)',
    '',
  ])('is never sent to %j', (redirect) => {
    expect(isAllowedRedirect(redirect, CLAIMED)).toBe(false);
  });
});
