import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { invalid } from './errors.ts';

/** Throws `VALIDATION_ERROR` for no bytes, and for such as are not UTF-8, instead of replacing them. */
export function checkBytes(bytes: Buffer): void {
  if (bytes.length === 0) throw invalid('body: is required');
  if (!isUtf8(bytes)) throw invalid('body: is not UTF-8');
}

/**
 * Parses a JSON body; throws `VALIDATION_ERROR` for anything else (decision 2). Refuses keys that would change an
 * object's prototype.
 */
export function parseJson(bytes: Buffer): unknown {
  checkBytes(bytes);
  try {
    return parse(bytes.toString('utf8'), null, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    throw invalid('body: malformed JSON');
  }
}
