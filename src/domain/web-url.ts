/**
 * This file parses http and https urls in bounded time. It imports nothing, because it is part not only of the service
 * but also of the page, the CLI and the client.
 */

/** The maximum length of a host. The time that `URL` takes grows with the square of the host's length. */
export const MAX_HOST_LENGTH = 253;

// biome-ignore lint/suspicious/noControlCharactersInRegex: `URL` silently drops some of these characters
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * Matches a url up to the end of its authority, by the rules of WHATWG's URL standard. The authority begins after any
 * number of slashes and backslashes, and ends before the path, the query or the fragment.
 */
const AUTHORITY = /^https?:[/\\]*(?<authority>[^/\\?#]*)/i;

const SCHEME = /^[a-z][a-z\d+.-]*:/i;

/** Returns the length of the host with its escapes: `%61` counts as three characters. */
function hostLength(authority: string): number {
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return host.replace(/:\d*$/, '').length;
}

/**
 * Parses an absolute http or https url without white space at its ends. For any other text, returns a message with the
 * rule that the text breaks.
 */
function readWebUrl(text: string): URL | string {
  if (CONTROL_CHARACTERS.test(text)) return 'may not contain control characters';
  const authority = AUTHORITY.exec(text)?.groups?.authority;
  if (authority === undefined)
    return SCHEME.test(text) ? 'expected an http or https url' : 'expected an absolute url';
  if (hostLength(authority) > MAX_HOST_LENGTH) return `host: at most ${MAX_HOST_LENGTH} characters`;
  return parseUrl(text) ?? 'expected an absolute url';
}

/** Does what `URL.parse` does. The client may run on the first releases of Node 20, which have no `URL.parse`. */
function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/**
 * Checks whether a text may be the url of a bookmark (docs/contract.md, decision 10). Returns the rule that the text
 * breaks, or undefined if the text is valid.
 */
export function findUrlFault(text: string): string | undefined {
  const urlOrRule = readWebUrl(text);
  return typeof urlOrRule === 'string' ? urlOrRule : undefined;
}

/** Parses an http or https url. Ignores white space at its ends. Returns null for any other text. */
export function parseWebUrl(text: string): URL | null {
  const urlOrRule = readWebUrl(text.trim());
  return typeof urlOrRule === 'string' ? null : urlOrRule;
}
