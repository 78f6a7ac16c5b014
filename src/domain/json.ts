import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { invalid } from './errors.ts';

/** Decodes a body; throws `VALIDATION_ERROR` for an empty body or invalid UTF-8. */
export function decodeJson(bytes: Buffer): string {
  if (bytes.length === 0) throw invalid('body: is required');
  if (!isUtf8(bytes)) throw invalid('body: is not UTF-8');
  return bytes.toString('utf8');
}

/**
 * Parses a JSON body; throws `VALIDATION_ERROR` for anything else (decision 2). Refuses keys that would change an
 * object's prototype.
 */
function parseJson(bytes: Buffer): unknown {
  return parseJsonText(decodeJson(bytes));
}

/** `parseJson` of text that is decoded already. */
export function parseJsonText(text: string): unknown {
  try {
    return parse(text, null, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    throw invalid('body: malformed JSON');
  }
}

/** A longer body is looked through before it is parsed. */
const COUNTED_ABOVE_BYTES = 65_536;

/** The longest valid body has some 46,000 of these characters, all of them in texts. */
const MAX_STRUCTURE = 50_000;

const [COMMA, OPEN_BRACKET, OPEN_BRACE] = Buffer.from(',[{');

/**
 * Parses the body of a request other than an import. Throws `VALIDATION_ERROR` for more values than any such body has:
 * 640 KiB of objects that all differ would block the event loop for about 45 ms.
 */
export function parseShortJson(bytes: Buffer): unknown {
  if (bytes.length > COUNTED_ABOVE_BYTES && hasMoreStructure(bytes, MAX_STRUCTURE))
    throw invalid('body: holds too many values');
  return parseJson(bytes);
}

function hasMoreStructure(bytes: Buffer, limit: number): boolean {
  let count = 0;
  for (const byte of bytes) if (byte === COMMA || byte === OPEN_BRACKET || byte === OPEN_BRACE) count += 1;
  return count > limit;
}
