/** Reads http and https urls in bounded time. It imports nothing: the page, the CLI and the client contain it too. */

/** The longest host, in characters. The time that `URL` takes grows with the square of the host's length. */
export const MAX_HOST_LENGTH = 253;

// biome-ignore lint/suspicious/noControlCharactersInRegex: `URL` drops some of them, wherever they are
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

/** As WHATWG reads it: any number of slashes of either kind, then everything up to the path, query or fragment. */
const AUTHORITY = /^https?:[/\\]*([^/\\?#]*)/i;

/** The host as sent, escapes included: at least as long as what `URL` takes for the host. */
function hostLength(authority: string): number {
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return host.replace(/:\d*$/, '').length;
}

/** What is wrong with an absolute http or https url without white space at its ends, or the url. */
function readWebUrl(text: string): URL | string {
  if (CONTROL_CHARACTERS.test(text)) return 'may not hold control characters';
  const authority = AUTHORITY.exec(text)?.[1];
  if (authority === undefined)
    return /^[a-z][a-z\d+.-]*:/i.test(text) ? 'expected an http or https url' : 'expected an absolute url';
  if (hostLength(authority) > MAX_HOST_LENGTH) return `host: at most ${MAX_HOST_LENGTH} characters`;
  return parseUrl(text) ?? 'expected an absolute url';
}

/** `URL.parse`, which the first releases of Node 20 lack. */
function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** The rule that a url breaks; undefined for one that bookmarks may have (decision 10). */
export function findUrlFault(text: string): string | undefined {
  const url = readWebUrl(text);
  return typeof url === 'string' ? url : undefined;
}

/** Parses an http or https url; null for anything else. */
export function parseWebUrl(text: string): URL | null {
  const url = readWebUrl(text.trim());
  return typeof url === 'string' ? null : url;
}
