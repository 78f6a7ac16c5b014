/**
 * Where a code for an app may be sent (RFC 8252 7, RFC 9700 2.1): to a port of the person's own computer, or to an address
 * that the operator named, compared character by character.
 */

/** Longer addresses are refused. */
export const REDIRECT_LENGTH = 500;

/** A port, and a path without query, fragment or anything that has to be normalised. `localhost` may be another host. */
const LOOPBACK =
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]):([1-9]\d{0,4})(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\dA-F]{2})*)*$/;

/** The scheme of an app is a reversed domain name, so it holds a dot (RFC 8252 7.1). */
const PRIVATE_USE = /^[a-z][a-z\d+-]*(\.[a-z\d+-]+)+:\/{0,3}[\w.~/-]*$/;

/** Whether an app on this computer listens there: any port of a loopback address. */
export function isLoopbackRedirect(text: string): boolean {
  const port = LOOPBACK.exec(text)?.[1];
  return port !== undefined && Number(port) <= 65_535;
}

/** Whether the operator may name the address: claimed https, or a scheme of the app's own. */
export function isClaimedRedirect(text: string): boolean {
  if (text.length > REDIRECT_LENGTH) return false;
  if (PRIVATE_USE.test(text)) return true;
  const url = URL.parse(text);
  return url !== null && url.protocol === 'https:' && url.href === text && !/[#@*]/.test(text);
}

/** Whether a code may be sent to this address. `claimed`: those that the operator named. */
export const isAllowedRedirect = (text: string, claimed: readonly string[]): boolean =>
  text.length <= REDIRECT_LENGTH && (isLoopbackRedirect(text) || claimed.includes(text));

/** The address with further parameters in its query. */
export function addParameters(redirect: string, parameters: Readonly<Record<string, string>>): string {
  const separator = redirect.includes('?') ? '&' : '?';
  return redirect + separator + new URLSearchParams(parameters).toString();
}
