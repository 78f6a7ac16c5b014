import { readFileSync } from 'node:fs';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { isClaimedRedirect } from './app-redirects.ts';

/** The variables of signing in, and their forbidden combinations. `src/config.ts` reads them. */

/** An OpenID provider, and how far it is trusted. */
export interface ProviderSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes: string;
  /** Shown on the button. */
  name: string;
  /** Whether an address that the provider calls verified opens the account with that address. */
  trustEmail: boolean;
  /** In ASCII. Empty allows all domains. */
  allowedDomains: readonly string[];
}

/** `invite`: a first login needs an invite for its address. `open`: a first login creates an account. */
export type SignUp = 'invite' | 'open';

export interface SignInSettings {
  /** Undefined if there is no login by a provider. */
  provider: ProviderSettings | undefined;
  signUp: SignUp;
  /** Addresses that codes for apps may be sent to, in addition to loopback addresses. */
  appRedirects: readonly string[];
}

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

const LOOPBACK_HOSTS = ['127.0.0.1', '[::1]', 'localhost'];

/** Whether unencrypted requests to the url stay on this computer. */
export const isOnLoopback = (url: URL): boolean => LOOPBACK_HOSTS.includes(url.hostname);

function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  // The library would accept the address of a metadata document, but then not check the issuer.
  if (url === null || /[?#@\s]|\/\.well-known\//.test(text)) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isOnLoopback(url));
}

const DOMAIN = /^(?=.{1,253}$)([a-z\d]([a-z\d-]{0,61}[a-z\d])?\.)+[a-z\d-]{2,63}$/;

/** A domain in ASCII and lower case, for comparison. Empty if the text is not a domain. */
export const foldDomain = (text: string): string => domainToASCII(text).toLowerCase();

const secretFile = z
  .string()
  .transform((path, ctx) => {
    try {
      const secret = readFileSync(path, 'utf8').trim();
      if (secret !== '') return secret;
    } catch {
      // Handled below, like an empty file.
    }
    ctx.issues.push({ code: 'custom', message: 'expected a file that contains the secret', input: path });
    return z.NEVER;
  })
  .optional()
  .meta({ example: '/run/secrets/oidc-client-secret' });

/** A schema for each variable. docs/configuration.md describes the variables. */
export const SIGN_IN_SCHEMAS = {
  OIDC_ISSUER: z
    .string()
    .refine(isIssuer, 'expected an https url without query and fragment; http only on this computer')
    .optional()
    .meta({ example: 'https://accounts.example.org' }),
  OIDC_CLIENT_ID: z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/, 'expected 1 to 255 characters of printable ASCII')
    .optional()
    .meta({ example: 'bookmarks' }),
  OIDC_CLIENT_SECRET: z
    .string()
    .regex(/^[\x20-\x7e]{1,1024}$/, 'expected 1 to 1024 characters of printable ASCII')
    .optional()
    .meta({ example: 'the-secret-from-the-provider', secret: true }),
  OIDC_CLIENT_SECRET_FILE: secretFile,
  OIDC_SCOPES: z
    .string()
    .refine(
      (text) => /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(text),
      'expected scopes separated by one space',
    )
    .refine((text) => text.split(' ').includes('openid'), 'expected openid among the scopes')
    .default('openid email')
    .meta({ example: 'openid email' }),
  OIDC_NAME: z
    .string()
    .regex(/^[^\p{C}\p{Zl}\p{Zp}]{1,60}$/u, 'expected 1 to 60 printable characters')
    .optional()
    .meta({ example: 'Example Accounts' }),
  OIDC_TRUST_EMAIL: z
    .enum(['true', 'false'], 'expected true or false')
    .transform((text) => text === 'true')
    .default(false)
    .meta({ example: 'true' }),
  OIDC_ALLOWED_DOMAINS: z
    .string()
    .transform((text) => splitList(text).map((domain) => foldDomain(domain) || domain))
    .refine(
      (domains) => domains.length > 0 && domains.every((domain) => DOMAIN.test(domain)),
      'expected domains separated by commas',
    )
    .optional()
    .meta({ example: 'example.org,example.com' }),
  SIGN_UP: z
    .enum(['invite', 'open'], 'expected invite or open')
    .default('invite')
    .meta({ example: 'invite' }),
  APP_REDIRECTS: z
    .string()
    .transform(splitList)
    .refine(
      (redirects) => redirects.length > 0 && redirects.every(isClaimedRedirect),
      'expected https urls without fragment, or addresses whose scheme contains a dot, separated by commas',
    )
    .default([])
    .meta({ example: 'https://app.example.org/signed-in,org.example.app:/signed-in' }),
};

export type SignInSchemas = typeof SIGN_IN_SCHEMAS;
type SignInName = keyof SignInSchemas;
type Values = { [N in SignInName]: z.output<SignInSchemas[N]> };

/** A forbidden combination: the variable to change, and the rule. */
interface Contradiction {
  name: SignInName;
  rule: string;
}

/** Variables that have no effect without a provider. */
const OF_A_PROVIDER = [
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_CLIENT_SECRET_FILE',
  'OIDC_NAME',
  'OIDC_TRUST_EMAIL',
  'OIDC_ALLOWED_DOMAINS',
] as const;

/** Returns the first contradiction among values that are valid on their own; undefined if there is none. */
export function findContradiction(values: Values): Contradiction | undefined {
  const isSet = (name: SignInName) => values[name] !== undefined && values[name] !== false;
  if (values.OIDC_ISSUER === undefined) {
    const lonely = OF_A_PROVIDER.find(isSet);
    if (lonely) return { name: 'OIDC_ISSUER', rule: `required if ${lonely} is set` };
    if (values.SIGN_UP === 'open') return { name: 'OIDC_ISSUER', rule: 'required if SIGN_UP=open' };
    return undefined;
  }
  if (!isSet('OIDC_CLIENT_ID')) return { name: 'OIDC_CLIENT_ID', rule: 'required if OIDC_ISSUER is set' };
  if (isSet('OIDC_CLIENT_SECRET') === isSet('OIDC_CLIENT_SECRET_FILE')) {
    const rule = isSet('OIDC_CLIENT_SECRET')
      ? 'set together with OIDC_CLIENT_SECRET_FILE; set only one of them'
      : 'required if OIDC_ISSUER is set, or OIDC_CLIENT_SECRET_FILE';
    return { name: 'OIDC_CLIENT_SECRET', rule };
  }
  return findAddressContradiction(values);
}

/** If e-mail addresses decide who may sign in, the provider must send them and be trusted with them. */
function findAddressContradiction(values: Values): Contradiction | undefined {
  const asksForEmail = values.OIDC_SCOPES.split(' ').includes('email');
  if (values.SIGN_UP === 'open' && !values.OIDC_TRUST_EMAIL)
    return { name: 'OIDC_TRUST_EMAIL', rule: 'must be true if SIGN_UP=open' };
  if ((values.OIDC_TRUST_EMAIL || values.OIDC_ALLOWED_DOMAINS) && !asksForEmail)
    return {
      name: 'OIDC_SCOPES',
      rule: 'must include email if OIDC_TRUST_EMAIL or OIDC_ALLOWED_DOMAINS is set',
    };
  return undefined;
}

/** Makes the settings from values without contradictions. */
export function toSettings(values: Values): SignInSettings {
  const { OIDC_ISSUER: issuer, SIGN_UP: signUp, APP_REDIRECTS: appRedirects } = values;
  if (issuer === undefined) return { provider: undefined, signUp, appRedirects };
  const provider = {
    issuer,
    clientId: values.OIDC_CLIENT_ID!,
    clientSecret: (values.OIDC_CLIENT_SECRET ?? values.OIDC_CLIENT_SECRET_FILE)!,
    scopes: values.OIDC_SCOPES,
    name: values.OIDC_NAME ?? new URL(issuer).host,
    trustEmail: values.OIDC_TRUST_EMAIL,
    allowedDomains: values.OIDC_ALLOWED_DOMAINS ?? [],
  };
  return { provider, signUp, appRedirects };
}
