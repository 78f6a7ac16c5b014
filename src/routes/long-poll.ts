import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Waiter } from '../coordination/port.ts';
import { unavailable } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';

/** Long polling (decision 16), the same for `sync` and `changes`. */

/** How far the database's clock may be ahead of what this process reckons it to be. */
const CLOCK_MARGIN_MS = 1_000;

/** What a poll asks for. */
interface Poll<Page> {
  principal: Principal;
  /** What wakes the poll. */
  channel: string;
  /** Reads the page as it is now. */
  read(): Promise<Page>;
  /** Whether to read again, asked where a notification may have been lost. */
  check(): Promise<boolean>;
  /** Whether the page brings something, so that the poll ends. */
  hasNews(page: Page): boolean;
}

/** The page that a poll ended with, and whether it was held. */
export interface PollEnd<Page> {
  page: Page;
  waited: boolean;
  /** If the replica drains: a random time after which the client should poll again. */
  retryAfterMs?: number | undefined;
}

/**
 * Reads a page; where it brings nothing new, holds the request until something may have changed, and reads again. Throws
 * `UNAVAILABLE` where the replica holds as many polls as it can.
 *
 * The order is what makes it exact: the waiter is registered before the first read, so whatever commits later is either
 * seen by that read, or wakes the waiter, or is found by a check where the notification may have been lost. Without either there
 * is nothing to read at the end (docs/design.md, "The end of a poll").
 */
export async function readOrWait<Page>(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  poll: Poll<Page>,
): Promise<PollEnd<Page>> {
  const waiter = context.coordination.notifier.register(poll.channel, poll.principal.key);
  const cancel = () => waiter.cancel();
  // The client may have left while its body was read: that event does not come again.
  if (reply.raw.destroyed) cancel();
  else reply.raw.once('close', cancel);
  try {
    const page = await poll.read();
    if (poll.hasNews(page) || !hold(waiter)) return { page, waited: false };
    request.wasHeld = true;
    const { news, retryAfterMs } = await waitForNews(context, poll, waiter);
    return { page: news ?? page, waited: true, retryAfterMs };
  } finally {
    reply.raw.off('close', cancel);
    waiter.release();
  }
}

function hold(waiter: Waiter): boolean {
  const refusal = waiter.hold();
  if (refusal === 'replica-full') {
    throw unavailable('this replica holds as many waits as it can', 1 + Math.floor(Math.random() * 5));
  }
  return refusal === undefined;
}

/** How a wait ended: with a page, without one, or because the replica drains. */
interface WaitResult<Page> {
  news?: Page | undefined;
  retryAfterMs?: number | undefined;
}

async function waitForNews<Page>(
  { coordination: { clock, notifier }, config, metrics }: Context,
  { principal, read, check, hasNews }: Poll<Page>,
  waiter: Waiter,
): Promise<WaitResult<Page>> {
  const deadline = clock.now() + config.syncWaitSeconds * 1_000;
  for (;;) {
    const end = await waiter.next(deadline);
    if (end === 'gone') return {};
    if (end === 'drain') return { retryAfterMs: Math.floor(Math.random() * notifier.returnSpreadMs) };
    if (end === 'timeout') return mayHaveExpired(principal) ? { news: await read() } : {};
    const wokenAt = clock.now();
    if (end === 'check' && !(await check())) continue;
    const page = await read();
    if (!hasNews(page)) continue;
    if (end === 'woken') metrics.woken((clock.now() - wokenAt) / 1_000);
    return { news: page };
  }
}

/** The end of a poll as every page of JSON has it. */
export const formatEnd = ({ waited, retryAfterMs }: Omit<PollEnd<unknown>, 'page'>): string =>
  `"waited":${waited}${retryAfterMs === undefined ? '' : `,"retry_after_ms":${retryAfterMs}`}}`;

/** That a token has expired wakes nobody. */
const mayHaveExpired = ({ expiresAtMs }: Principal): boolean =>
  expiresAtMs <= performance.now() + CLOCK_MARGIN_MS;
