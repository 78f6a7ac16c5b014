import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { invalid } from './errors.ts';

/**
 * How many objects and arrays one body may have. An export of 64 MiB has fewer. As many as fit, 22 million empty
 * ones, would take 2 GB and end a worker with less memory, and then the next worker.
 */
const MAX_CONTAINERS = 3_500_000;

const [QUOTE, BACKSLASH, BRACKET, BRACE] = [0x22, 0x5c, 0x5b, 0x7b];

/** Whether a text that may be JSON has more objects and arrays than allowed. */
function holdsTooMany(bytes: Buffer): boolean {
  if (bytes.length <= MAX_CONTAINERS) return false;
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === BRACE || byte === BRACKET) count += 1;
  }
  return count > MAX_CONTAINERS;
}

/** The position of the quote that ends the string which begins at `start`; the length of the text where none does. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at;
  }
  return bytes.length;
}

/**
 * Parses a JSON body; throws `VALIDATION_ERROR` for anything else (decision 2). Refuses bytes that are not UTF-8,
 * instead of replacing them, and keys that would change an object's prototype.
 */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw invalid('body: is required');
  if (!isUtf8(bytes)) throw invalid('body: is not UTF-8');
  if (holdsTooMany(bytes)) throw invalid(`body: at most ${MAX_CONTAINERS} objects and arrays`);
  try {
    return parse(bytes.toString('utf8'), null, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    throw invalid('body: malformed JSON');
  }
}
