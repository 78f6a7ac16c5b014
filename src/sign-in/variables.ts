import { readFileSync } from 'node:fs';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { isClaimedRedirect } from './app-redirects.ts';

/** The environment variables for signing in, and their forbidden combinations. `src/config.ts` reads the variables. */

/** An OpenID provider, and what it may decide. */
export interface ProviderSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes: string;
  /** The provider's name on the button. */
  name: string;
  /**
   * Whether to trust the provider's verification of e-mail addresses. If true, a person who signs in with a verified
   * address gets the account that has this address.
   */
  trustEmail: boolean;
  /** Only e-mail addresses in these domains (in ASCII) permit signing in. If the list is empty, any domain will do. */
  allowedDomains: readonly string[];
}

/** `invite`: a first login needs an invite for its address. `open`: a first login creates an account. */
export type SignUp = 'invite' | 'open';

export interface SignInSettings {
  /** Undefined if no provider is configured. */
  provider: ProviderSettings | undefined;
  signUp: SignUp;
  /** The addresses, besides loopback addresses, to which a browser may take an app's sign-in code. */
  appRedirects: readonly string[];
}

/** Splits a list at its commas. */
export const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

/** Returns the schema of a variable that is `true` or `false`. */
export const flag = (byDefault: boolean) =>
  z
    .enum(['true', 'false'], 'expected true or false')
    .transform((text) => text === 'true')
    .default(byDefault)
    .meta({ example: 'true' });

/**
 * Returns the schema of a variable that names a file. The parsed value is the text of the file. `rule` is the error
 * message for a file that is empty or cannot be read.
 */
export const fileText = (rule: string, example: string) =>
  z
    .string()
    .transform((path, ctx) => {
      try {
        const text = readFileSync(path, 'utf8');
        if (text.trim() !== '') return text;
      } catch {
        // A file that cannot be read is handled below, like an empty file.
      }
      ctx.issues.push({ code: 'custom', message: rule, input: path });
      return z.NEVER;
    })
    .optional()
    .meta({ example });

/** Whether a host name or address is reachable only from this machine. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(host);

/** Whether unencrypted requests to the url stay on this computer. */
export const isOnLoopback = (url: URL): boolean => isLoopback(url.hostname);

function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  // The address of a metadata document is refused: the library would accept it, but then not check the issuer.
  if (url === null || /[?#@\s]|\/\.well-known\//.test(text)) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isOnLoopback(url));
}

/** Matches a domain in ASCII with at least two labels. */
const DOMAIN = /^(?=.{1,253}$)([a-z\d]([a-z\d-]{0,61}[a-z\d])?\.)+[a-z\d-]{2,63}$/;

/** Returns a domain in ASCII and lower case, for comparison. Empty if the text is not a domain. */
export const foldDomain = (text: string): string => domainToASCII(text).toLowerCase();

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
  OIDC_CLIENT_SECRET_FILE: fileText(
    'expected a file that contains the secret',
    '/run/secrets/oidc-client-secret',
  ),
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
  OIDC_TRUST_EMAIL: flag(false),
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

type SignInName = keyof typeof SIGN_IN_SCHEMAS;

/** Variables that have no effect without a provider. */
const OF_A_PROVIDER = [
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_CLIENT_SECRET_FILE',
  'OIDC_NAME',
  'OIDC_TRUST_EMAIL',
  'OIDC_ALLOWED_DOMAINS',
] as const;

/** The schema of all sign-in variables. A forbidden combination is reported for the variable that must change. */
export const signInSettings = z.object(SIGN_IN_SCHEMAS).transform((values, ctx): SignInSettings => {
  const refuse = (name: SignInName, message: string) => {
    ctx.issues.push({ code: 'custom', message, path: [name], input: values });
    return z.NEVER;
  };
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_SCOPES: scopes } = values;
  const { OIDC_CLIENT_SECRET: secret, OIDC_CLIENT_SECRET_FILE: secretInFile } = values;
  const { SIGN_UP: signUp, APP_REDIRECTS: appRedirects, OIDC_TRUST_EMAIL: trustEmail } = values;
  if (issuer === undefined) {
    const useless = OF_A_PROVIDER.find((name) => values[name] !== undefined && values[name] !== false);
    if (useless) return refuse('OIDC_ISSUER', `required if ${useless} is set`);
    if (signUp === 'open') return refuse('OIDC_ISSUER', 'required if SIGN_UP=open');
    return { provider: undefined, signUp, appRedirects };
  }
  if (clientId === undefined) return refuse('OIDC_CLIENT_ID', 'required if OIDC_ISSUER is set');
  const clientSecret = secret ?? secretInFile?.trim();
  if (clientSecret === undefined)
    return refuse(
      'OIDC_CLIENT_SECRET',
      'required if OIDC_ISSUER is set, or set OIDC_CLIENT_SECRET_FILE instead',
    );
  if (secret !== undefined && secretInFile !== undefined)
    return refuse('OIDC_CLIENT_SECRET', 'set together with OIDC_CLIENT_SECRET_FILE; set only one of them');
  // With SIGN_UP=open, the provider must be trusted to verify e-mail addresses. If addresses decide who may sign in,
  // the provider must send them.
  if (signUp === 'open' && !trustEmail) return refuse('OIDC_TRUST_EMAIL', 'must be true if SIGN_UP=open');
  if ((trustEmail || values.OIDC_ALLOWED_DOMAINS) && !scopes.split(' ').includes('email'))
    return refuse('OIDC_SCOPES', 'must include email if OIDC_TRUST_EMAIL or OIDC_ALLOWED_DOMAINS is set');
  const name = values.OIDC_NAME ?? new URL(issuer).host;
  const allowedDomains = values.OIDC_ALLOWED_DOMAINS ?? [];
  return {
    provider: { issuer, clientId, clientSecret, scopes, name, trustEmail, allowedDomains },
    signUp,
    appRedirects,
  };
});
