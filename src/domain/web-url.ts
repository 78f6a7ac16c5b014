/**
 * Parses http and https urls in bounded time. It imports nothing, because the page, the CLI and the client contain it
 * too.
 */

/** The maximum length of a host. The time that `URL` takes grows with the square of this length. */
export const MAX_HOST_LENGTH = 253;

// biome-ignore lint/suspicious/noControlCharactersInRegex: `URL` drops some of them, wherever they are
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * The authority as in WHATWG's standard: any slashes and backslashes, then everything before the path, query or
 * fragment.
 */
const AUTHORITY = /^https?:[/\\]*([^/\\?#]*)/i;

/** The length of the host as sent, with escapes. `URL` never sees a longer host. */
function hostLength(authority: string): number {
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return host.replace(/:\d*$/, '').length;
}

/** Parses an absolute http or https url without white space at its ends. Returns the broken rule if it is invalid. */
function readWebUrl(text: string): URL | string {
  if (CONTROL_CHARACTERS.test(text)) return 'may not contain control characters';
  const authority = AUTHORITY.exec(text)?.[1];
  if (authority === undefined)
    return /^[a-z][a-z\d+.-]*:/i.test(text) ? 'expected an http or https url' : 'expected an absolute url';
  if (hostLength(authority) > MAX_HOST_LENGTH) return `host: at most ${MAX_HOST_LENGTH} characters`;
  return parseUrl(text) ?? 'expected an absolute url';
}

/** Does the work of `URL.parse`, which the first releases of Node 20 lack. */
function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Returns the rule that a url breaks; undefined if it is valid for a bookmark (decision 10). */
export function findUrlFault(text: string): string | undefined {
  const url = readWebUrl(text);
  return typeof url === 'string' ? url : undefined;
}

/** Parses an http or https url. Null for anything else. */
export function parseWebUrl(text: string): URL | null {
  const url = readWebUrl(text.trim());
  return typeof url === 'string' ? null : url;
}
