import { z } from 'zod';

/** The target of the redirect after signing in. It must be a path of this service (RFC 9700 section 4.11). */

/** The maximum length of the target. It suffices for `/login/app` with all its parameters. */
const RETURN_TO_LENGTH = 2_500;

/**
 * Matches a path of this service. The path must not begin with `//` or `/\`, and must not contain characters that
 * browsers drop, because a browser could take such a path for another origin.
 */
const LOCAL_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** The base url for the check. Any origin would do, because only paths are allowed. */
const SOME_ORIGIN = 'https://origin.invalid';

/** Returns the text unchanged if it is a path of this service, perhaps with a query. Undefined otherwise. */
export function readReturnTo(text: string): string | undefined {
  if (text.length > RETURN_TO_LENGTH || !LOCAL_PATH.test(text)) return undefined;
  const url = URL.parse(text, SOME_ORIGIN);
  // The URL parser resolves `.` and `..`, so the pathname of `/..//host` is `//host` here.
  if (url?.origin !== SOME_ORIGIN || /^\/[/\\]/.test(url.pathname)) return undefined;
  // A proxy may decode `%2f` and `%5c` to `/` and `\`. The decoded path must not lead to another origin either.
  return /^\/%(2f|5c)/i.test(url.pathname) ? undefined : text;
}

/** The schema of `return_to` in a request. The default is the start page. */
export const returnTo = z
  .string()
  .refine((text) => readReturnTo(text) !== undefined, 'expected a path of this service, such as /settings')
  .default('/');
