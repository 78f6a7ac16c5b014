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
  let tail = new Uint8Array();
  for await (const chunk of chunks) {
    tail = joinTail(tail, chunk);
    yield chunk;
  }
  if (END.test(new TextDecoder().decode(tail))) return;
  const requestId = headers.get('x-request-id') ?? '';
  throw new ApiError('the export was truncated', { code: 'CONNECTION_LOST', requestId });
}

function joinTail(tail: Uint8Array, chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const last = chunk.subarray(-TAIL_BYTES);
  const kept = tail.subarray(Math.max(0, tail.length + last.length - TAIL_BYTES));
  const joined = new Uint8Array(kept.length + last.length);
  joined.set(kept);
  joined.set(last, kept.length);
  return joined;
}
