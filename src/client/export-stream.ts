import { ApiError } from './errors.ts';
import type { Requester, RequestOptions } from './requester.ts';

/** Matches the end of a complete export. */
const END = /\],"exported_at":"[^"]{20,40}","count":\d{1,16}\}\s*$/;

/** The text that `END` matches is shorter than this. */
const TAIL_BYTES = 128;

/**
 * Yields the bytes of an export. Throws `CONNECTION_LOST` if the end of the export is missing. Does not retry after
 * the response has begun.
 */
export async function* streamExport(
  requester: Requester,
  options?: RequestOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { chunks, headers } = await requester.open('/export', {}, options);
  const decoder = new TextDecoder();
  let tail = '';
  for await (const chunk of chunks) {
    // The last bytes of a chunk may begin in the middle of a character, which is then decoded wrongly. That does no
    // harm, because the text that `END` matches is ASCII.
    tail = (tail + decoder.decode(chunk.subarray(-TAIL_BYTES))).slice(-TAIL_BYTES);
    yield chunk;
  }
  if (END.test(tail)) return;
  const requestId = headers.get('x-request-id') ?? '';
  throw new ApiError('the export was truncated', { code: 'CONNECTION_LOST', requestId });
}
