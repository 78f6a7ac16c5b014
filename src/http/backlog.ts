import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { requirePrincipal } from './authentication.ts';
import { type Pages, streamPages } from './streamed-pages.ts';

/** Limits the bytes of responses that a user has not read yet (docs/contract.md, decision 32). */

/** A read whose response is longer than this is refused while the user leaves too many bytes of responses unread. */
const SHORT_BYTES = 65_536;

/**
 * Calls `respond` while it holds one of the user's permits. `respond` sends the response and calls `countBacklog`. So
 * the unread bytes of the response are already counted when the next request gets the permit, and that request is
 * refused if the user now has too many unread bytes.
 */
export function holdPermit(
  { requestPermits, overload }: Pick<Context, 'overload' | 'requestPermits'>,
  request: FastifyRequest,
  respond: () => Promise<void>,
): Promise<void> {
  const { userId } = requirePrincipal(request);
  return requestPermits.run(userId, () => {
    // While this request waited for the permit, the user may have reached the limit of unread bytes.
    overload.refuse(userId);
    return respond();
  });
}

/**
 * Throws `UNAVAILABLE` if the response of a read is long and its user has too many unread bytes. All polls of an
 * account are notified together, and each gets a page. So the account may have reached its limit since the request was
 * first checked. Refusing a read is safe, because a read changes nothing.
 */
export function refuseLongRead(
  { overload }: Pick<Context, 'overload'>,
  { principal }: FastifyRequest,
  text: string,
): void {
  if (text.length > SHORT_BYTES) overload.refuse(principal?.userId);
}

/** Counts those bytes of a response that the socket has not taken yet, until the response is sent or aborted. */
export function countBacklog(
  { outboundBacklog }: Pick<Context, 'outboundBacklog'>,
  { principal }: FastifyRequest,
  { raw }: FastifyReply,
): void {
  if (principal !== undefined && raw.writableLength > 0 && !raw.closed)
    raw.once('close', outboundBacklog.hold(principal.userId, raw.writableLength));
}

/** Returns a response as a stream that reads its pages while the client reads. The caller holds no permit. */
export async function streamResponse(
  { requestPermits, outboundBacklog, config }: Pick<Context, 'config' | 'outboundBacklog' | 'requestPermits'>,
  request: FastifyRequest,
  pages: Pages,
): Promise<Readable> {
  // The response fails if it waits longer than this to read its next page. A client that reads nothing is disconnected
  // before this time has passed.
  const waitMs = (config.responseStallSeconds + 5) * 1_000;
  const { userId } = requirePrincipal(request);
  const stream = await streamPages({ requestPermits, outboundBacklog, waitMs }, userId, pages);
  return stream.once('error', () => {
    request.wasAborted = true;
  });
}
