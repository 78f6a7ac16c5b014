import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { invalid } from './errors.ts';

/** Decodes the bytes of a body to text. Throws `VALIDATION_ERROR` for an empty body or invalid UTF-8. */
export function decodeJson(bytes: Buffer): string {
  if (bytes.length === 0) throw invalid('body: is required');
  if (!isUtf8(bytes)) throw invalid('body: is not UTF-8');
  return bytes.toString('utf8');
}

/**
 * Parses a JSON body. Throws `VALIDATION_ERROR` for malformed JSON (docs/contract.md, decision 2), and for keys that
 * would change an object's prototype.
 */
function parseJson(bytes: Buffer): unknown {
  return parseJsonText(decodeJson(bytes));
}

/** Like `parseJson`, for text that is already decoded. */
export function parseJsonText(text: string): unknown {
  try {
    return parse(text, null, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    throw invalid('body: malformed JSON');
  }
}

/** Before `parseShortJson` parses a body that is longer than this, it counts the commas and brackets of the body. */
const COUNTED_ABOVE_BYTES = 65_536;

/**
 * The maximum number of commas and opening brackets in a body. A valid body has at most about 46,000 of them, nearly
 * all of them inside its texts.
 */
const MAX_STRUCTURE = 50_000;

const [COMMA, OPEN_BRACKET, OPEN_BRACE] = Buffer.from(',[{');

/**
 * Parses the body of any request except an import. Throws `VALIDATION_ERROR` if the body has more values than a valid
 * body can have. Parsing so many values could block the event loop for a noticeable time.
 */
export function parseShortJson(bytes: Buffer): unknown {
  if (bytes.length > COUNTED_ABOVE_BYTES && hasMoreStructure(bytes, MAX_STRUCTURE))
    throw invalid('body: contains too many values');
  return parseJson(bytes);
}

/** Returns whether a body has more than `limit` commas and opening brackets. */
function hasMoreStructure(bytes: Buffer, limit: number): boolean {
  let count = 0;
  for (const byte of bytes) if (byte === COMMA || byte === OPEN_BRACKET || byte === OPEN_BRACE) count += 1;
  return count > limit;
}

/** Returns JSON in which the fields of every object are sorted by name. Fields that are undefined are left out. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
