/**
 * The addresses to which a browser may take an app's sign-in code (RFC 8252 section 7, RFC 9700 section 2.1): a port of
 * the person's own computer, or an address that the operator configured. Addresses are compared character by character.
 */

/** The maximum length of an address. */
export const REDIRECT_LENGTH = 500;

/**
 * Matches a loopback address with a port, and with a path that needs no normalization. Query and fragment are refused.
 * `localhost` is refused too, because it may be another host.
 */
const LOOPBACK =
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]):(?<port>[1-9]\d{0,4})(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\dA-F]{2})*)*$/;

/**
 * Matches an address with an app's own scheme. Such a scheme is a reversed domain name, so it contains a dot
 * (RFC 8252 section 7.1).
 */
const APP_SCHEME = /^[a-z][a-z\d+-]*(\.[a-z\d+-]+)+:\/{0,3}[\w.~/-]*$/;

/** Whether the address is a loopback address with a port, where an app on the person's computer can listen. */
export function isLoopbackRedirect(text: string): boolean {
  const port = LOOPBACK.exec(text)?.groups?.port;
  return port !== undefined && Number(port) <= 65_535;
}

/** Whether the operator may configure the address. Its scheme must be https or an app's own. */
export function isClaimedRedirect(text: string): boolean {
  if (text.length > REDIRECT_LENGTH) return false;
  if (APP_SCHEME.test(text)) return true;
  const url = URL.parse(text);
  // `#` begins a fragment, `@` ends user info, and `*` looks like a wildcard. All three are refused.
  return url !== null && url.protocol === 'https:' && url.href === text && !/[#@*]/.test(text);
}

/** Whether a code may be sent to this address. `claimed` lists the addresses that the operator configured. */
export const isAllowedRedirect = (text: string, claimed: readonly string[]): boolean =>
  text.length <= REDIRECT_LENGTH && (isLoopbackRedirect(text) || claimed.includes(text));

/** Adds parameters to the query of an address. */
export function addParameters(redirect: string, parameters: Readonly<Record<string, string>>): string {
  const separator = redirect.includes('?') ? '&' : '?';
  return redirect + separator + new URLSearchParams(parameters).toString();
}
