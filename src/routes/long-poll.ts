import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import type { Waiter } from '../coordination/port.ts';
import { unavailable } from '../domain/errors.ts';
import { integerWithin } from '../domain/fields.ts';
import type { Principal } from '../domain/tokens.ts';

/** Long polling (docs/contract.md, decision 16) for `/bookmarks/sync` and `/bookmarks/changes`. */

/** The database's clock may be ahead of this process's estimate of that clock by up to this time. */
const CLOCK_MARGIN_MS = 1_000;

/** The largest `wait_seconds`. A larger number than `SYNC_WAIT_SECONDS` is no error, and means `SYNC_WAIT_SECONDS`. */
const MAX_WAIT_SECONDS = 30;

/** The fields of a request that may wait. `checkWait` checks how they are combined. */
export const waitFields = {
  wait: z
    .boolean()
    .optional()
    .meta({ description: 'Default: false, or true with `wait_seconds`.', examples: [true] }),
  wait_seconds: integerWithin(0, MAX_WAIT_SECONDS)
    .optional()
    .meta({ examples: [20] }),
};

type Wait = { wait?: boolean | undefined; wait_seconds?: number | undefined };

/** A rule for a body: `wait_seconds` asks to wait, so it contradicts `wait: false`. */
export function checkWait({ value, issues }: z.core.ParsePayload<Wait>): void {
  if (value.wait !== false || value.wait_seconds === undefined) return;
  issues.push({
    code: 'custom',
    message: 'cannot be given with wait: false',
    path: ['wait_seconds'],
    input: value,
  });
}

/** Returns the longest time that a request may be held, in seconds. 0 means that the request does not wait. */
export function readWaitSeconds(
  { config }: Pick<Context, 'config'>,
  { wait, wait_seconds: given }: Wait,
): number {
  if (given !== undefined) return Math.min(given, config.syncWaitSeconds);
  return wait === true ? config.syncWaitSeconds : 0;
}

/** What `readOrWait` needs to know about a long poll. */
interface Poll<Page> {
  principal: Principal;
  /** The longest time that the request may be held. */
  waitSeconds: number;
  /** The channel whose notifications end the wait. */
  channel: string;
  /** Reads the current page. */
  read(): Promise<Page>;
  /** Returns whether a read may find news. Called when a notification may have been lost. */
  check(): Promise<boolean>;
  /** Whether the page has news, so that the poll ends. */
  hasNews(page: Page): boolean;
}

/** How a poll ended, for its response. */
interface PollEnd<Page> {
  page: Page;
  /** Whether the poll was held. */
  waited: boolean;
}

/**
 * Reads a page. If it has no news and the request may wait, holds the request until something may have changed, then reads again. Throws
 * `UNAVAILABLE` if the replica already holds its maximum number of polls.
 *
 * No change is missed, because the waiter is registered before the first read. The first read sees every change that
 * was committed before it. The notification of a later change wakes the waiter. If a notification may have been lost,
 * the wait ends with the event `check`, at the latest at the wait's deadline. The poll then asks Postgres. So a wait
 * that ends with the event `timeout` does not need to look for changes (docs/design.md, "The end of a poll").
 */
export async function readOrWait<Page>(
  context: Pick<Context, 'coordination' | 'metrics'>,
  request: FastifyRequest,
  reply: FastifyReply,
  poll: Poll<Page>,
): Promise<PollEnd<Page>> {
  if (poll.waitSeconds === 0) return { page: await poll.read(), waited: false };
  const waiter = context.coordination.notifier.register(poll.channel, poll.principal.key);
  const cancel = () => waiter.cancel();
  // If the client left while the body was read, the `close` event has already come.
  if (reply.raw.destroyed) cancel();
  else reply.raw.once('close', cancel);
  try {
    const page = await poll.read();
    if (poll.hasNews(page) || !tryHold(waiter)) return { page, waited: false };
    request.wasHeld = true;
    const { news, retryAfterMs } = await waitForNews(context, poll, waiter);
    if (retryAfterMs !== undefined) reply.header('x-retry-after-ms', retryAfterMs);
    return { page: news ?? page, waited: true };
  } finally {
    reply.raw.off('close', cancel);
    waiter.release();
  }
}

/**
 * Holds a poll, and returns true. If this replica already holds the maximum number of polls of this token, returns
 * false. In that case, the poll must respond immediately. Throws `UNAVAILABLE` if the replica already holds its maximum
 * number of polls in total.
 */
function tryHold(waiter: Waiter): boolean {
  const refusal = waiter.hold();
  if (refusal === 'replica-full') {
    throw unavailable('this replica cannot hold more long polls', 1 + Math.floor(Math.random() * 5));
  }
  return refusal === undefined;
}

/** The result of a wait: a page with news, or a delay because the replica drains, or neither. */
interface WaitResult<Page> {
  news?: Page | undefined;
  /** A random delay in milliseconds before the client should poll again. */
  retryAfterMs?: number | undefined;
}

/**
 * Waits until a read finds news, the client leaves, the replica drains or the time is up. When the time is up, the
 * function reads once more only if the token may have expired. If the token has expired, that read throws
 * `INVALID_TOKEN`.
 */
async function waitForNews<Page>(
  { coordination: { clock, notifier }, metrics }: Pick<Context, 'coordination' | 'metrics'>,
  { principal, waitSeconds, read, check, hasNews }: Poll<Page>,
  waiter: Waiter,
): Promise<WaitResult<Page>> {
  const deadline = clock.now() + waitSeconds * 1_000;
  for (;;) {
    const event = await waiter.next(deadline);
    if (event === 'gone') return {};
    if (event === 'drain') return { retryAfterMs: Math.floor(Math.random() * notifier.returnSpreadMs) };
    if (event === 'timeout') return mayHaveExpired(principal) ? { news: await read() } : {};
    const wokenAt = clock.now();
    if (event === 'check' && !(await check())) continue;
    const page = await read();
    if (!hasNews(page)) continue;
    if (event === 'woken') metrics.pollResponded((clock.now() - wokenAt) / 1_000);
    return { news: page };
  }
}

/**
 * Whether the token may have expired. A poll asks this at its end, because no notification comes when a token expires.
 */
const mayHaveExpired = ({ expiresAtMs }: Principal): boolean =>
  expiresAtMs <= performance.now() + CLOCK_MARGIN_MS;
