import { ApiError } from './errors.ts';
import type { Requester, RequestOptions } from './requester.ts';

/** Matches the end of a complete export. */
const END = /\],"exported_at":"[^"]{20,40}","count":\d{1,16}\}\s*$/;

const TAIL_BYTES = 128;

/**
 * Yields the bytes of an export. Throws `CONNECTION_LOST` if they end too early. Does not retry once the response has
 * begun.
 */
export async function* streamExport(
  requester: Requester,
  options?: RequestOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { chunks, headers } = await requester.open('/export', {}, options);
  const decoder = new TextDecoder();
  let tail = '';
  for await (const chunk of chunks) {
    // A chunk may begin or end inside a character. The end of a complete export is ASCII.
    tail = (tail + decoder.decode(chunk.subarray(-TAIL_BYTES))).slice(-TAIL_BYTES);
    yield chunk;
  }
  if (END.test(tail)) return;
  const requestId = headers.get('x-request-id') ?? '';
  throw new ApiError('the export was truncated', { code: 'CONNECTION_LOST', requestId });
}
