/**
 * Reads urls as people type and share them. This file imports nothing, because it is part of the page and of the
 * command line.
 */

/** Matches a host name with a dot, in any script, and the port, path, query or fragment that may follow. */
const HOST_NAME = /^[\p{L}\p{M}\p{N}_-]+(\.[\p{L}\p{M}\p{N}_-]+)+\.?(:\d+)?([/?#]|$)/u;

/** Matches an address of this computer. Services there seldom have a certificate. */
const OWN_COMPUTER = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?([/?#]|$)/i;

/**
 * Adds the scheme to a url that begins with a host name: `http://` for this computer, `https://` for any other. Returns
 * any other text unchanged, without white space at its ends.
 */
export function completeUrl(text: string): string {
  const typed = text.trim();
  if (OWN_COMPUTER.test(typed)) return `http://${typed}`;
  return HOST_NAME.test(typed) ? `https://${typed}` : typed;
}

/** The opening bracket or quotation mark for each closing one. */
const OPENING_BY_CLOSING: Readonly<Record<string, string>> = {
  ')': '(',
  ']': '[',
  '}': '{',
  "'": "'",
  '’': '‘',
};

/** Matches punctuation at the end of a sentence. */
const PUNCTUATION = /[.,;:!?]$/;

/** Matches an http or https url up to white space, or to a bracket or punctuation that no url contains as it is. */
const URL_IN_TEXT = /https?:\/\/[^\s<>"“”«»「」『』【】《》〈〉（）［］｛｝＜＞…。、，．；：！？]+/iu;

/**
 * Returns the first http or https url in a text that somebody shared, without the punctuation and the brackets around
 * it. Undefined if the text has none. Keeps brackets that the url itself opens:
 * `https://en.wikipedia.org/wiki/C_(language)`. If the text is only a url, returns it unchanged.
 */
export function findUrl(text: string): string | undefined {
  let url = URL_IN_TEXT.exec(text)?.[0];
  if (url === undefined || url === text.trim()) return url;
  while (PUNCTUATION.test(url) || endsWithUnopened(url)) url = url.slice(0, -1);
  return url;
}

/** Whether the url ends with a bracket or a quotation mark that it does not open. */
function endsWithUnopened(url: string): boolean {
  const closing = url.at(-1) ?? '';
  const opening = OPENING_BY_CLOSING[closing];
  if (opening === undefined) return false;
  const count = (mark: string) => url.split(mark).length - 1;
  return opening === closing || count(opening) < count(closing);
}

/** Reads the argument of a command: a url with or without its scheme, or a text with a url in it. */
export function readTypedUrl(text: string): string {
  const url = completeUrl(text);
  const isWhole = /^[a-z][a-z\d+.-]*:\S*$/i.test(url);
  return isWhole ? url : (findUrl(url) ?? url);
}
