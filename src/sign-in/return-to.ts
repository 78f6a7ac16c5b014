/** Where a browser goes after it signed in: a place of this service and of no other (RFC 9700 4.11). */

/** Long enough for `/login/app` with all its parameters. */
const RETURN_TO_LENGTH = 2_500;

/** A path of this origin; what browsers take for another origin has `//`, `/\` or a character that they drop. */
const LOCAL_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** Any origin: that of the service makes no difference to what is a path of it. */
const SOME_ORIGIN = 'https://origin.invalid';

/** The path with its query, as it was given, where it is a place of this service; `undefined` otherwise. */
export function readReturnTo(text: string): string | undefined {
  if (text.length > RETURN_TO_LENGTH || !LOCAL_PATH.test(text)) return undefined;
  const url = URL.parse(text, SOME_ORIGIN);
  // Dots are resolved before a path is judged: `/./` and `/..//host` too.
  if (url?.origin !== SOME_ORIGIN || /^\/[/\\]/.test(url.pathname)) return undefined;
  // A second decoding by somebody else must not lead away either.
  return /^\/%(2f|5c)/i.test(url.pathname) ? undefined : text;
}
