import { ApiError } from '../client/errors.ts';
import { backoffMs, pausePolling, sleep, systemClock } from '../client/timing.ts';
import type { Changes } from '../domain/resources.ts';
import { hasCode } from './errors.ts';
import { sayConnection } from './notices.ts';
import { ask, client, signals } from './session.ts';
import { texts } from './texts.ts';

/**
 * Reports changes that are made elsewhere as they happen. A lock lets only one tab of a browser poll. That tab passes
 * each page of changes to the other tabs. When it closes, another tab takes the lock. Every tab keeps the cursor of the
 * last page, so the tab that polls next continues there. Applying a page twice does no harm.
 */

const timing = { clock: systemClock, random: Math.random };

/** The most ms between a change and the response of a held poll that reports the change. */
const LATE_MS = 5_000;

/**
 * If an empty poll takes less than this many ms, the service did not hold it. Then the page waits before the next poll.
 */
const SHORT_MS = 1_000;

interface Following {
  /** Starts polling. While another tab polls, waits until that tab stops. */
  resume(): void;
  /** Stops polling until `resume`. A page in the back/forward cache must hold neither a poll nor the lock. */
  pause(): void;
}

/**
 * A page of changes, as tabs pass it on. All its changes were made after `sinceMs`. The changes of later pages were
 * made after `askedMs`.
 */
interface Message {
  page: Changes;
  sinceMs: number;
  askedMs: number;
}

/**
 * Calls `onChanges` with every page of changes from now on. `sinceMs` is a time before all changes of that page.
 * Resolves when it knows the position from which it follows. It polls only after the caller has read the collection and
 * called `resume`.
 */
export async function followChanges(
  userEmail: string,
  onChanges: (page: Changes, sinceMs: number) => void,
): Promise<Following> {
  const name = `changes of ${userEmail}`;
  let askedMs = Date.now();
  let cursor: string | undefined;
  let stopping = new AbortController();
  let channel: BroadcastChannel | undefined;

  const apply = (message: Message) => {
    cursor = message.page.cursor;
    askedMs = message.askedMs;
    onChanges(message.page, message.sinceMs);
  };
  const listen = () => {
    channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }: MessageEvent<Message>) => apply(data);
  };
  listen();
  const start = await ask(() => client.readChanges({ from: 'now' }));
  const lead = (signal: AbortSignal) =>
    poll(
      () => cursor ?? start.cursor,
      signal,
      (page, nowAskedMs) => {
        // A held poll found nothing when it began, so its changes are later than that. They are also at most `LATE_MS`
        // old. If the poll was not held, its changes are only known to be later than the previous request.
        const sinceMs = page.waited ? Math.max(nowAskedMs, Date.now() - LATE_MS) : askedMs;
        const message = { page, sinceMs, askedMs: nowAskedMs };
        channel?.postMessage(message);
        apply(message);
      },
    );
  return {
    resume() {
      if (channel === undefined) listen();
      stopping = new AbortController();
      const { signal } = stopping;
      void whenAlone(name, signal, () => lead(signal)).catch(() => {});
    },
    pause() {
      stopping.abort();
      channel?.close();
      channel = undefined;
    },
  };
}

/** Runs a function in one tab at a time. Without TLS, browsers have no locks, so every tab runs it. */
const whenAlone = (name: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> =>
  'locks' in navigator ? navigator.locks.request(name, { signal }, run) : run();

/** Polls until the signal is aborted. Passes every page to `onPage`. */
async function poll(
  cursor: () => string,
  signal: AbortSignal,
  onPage: (page: Changes, askedMs: number) => void,
): Promise<void> {
  let attempt = new AbortController();
  // A held request would not notice that the network is gone.
  addEventListener('offline', () => attempt.abort(), { signal });
  for (let failures = 0; !signal.aborted; ) {
    const askedMs = Date.now();
    attempt = new AbortController();
    try {
      const page = await ask(() =>
        client.readChanges(
          { cursor: cursor(), wait: true, limit: 100 },
          { signal: AbortSignal.any([signal, attempt.signal]), retryForMs: 0 },
        ),
      );
      if (failures > 0) sayConnection(undefined);
      failures = 0;
      onPage(page, askedMs);
      if (!page.has_more && isEmpty(page)) {
        const wasShort = !page.waited && Date.now() - askedMs < SHORT_MS;
        await pausePolling(timing, { wasShort, retryAfterMs: page.retry_after_ms }, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      await pauseAfter(error, failures, signal);
    }
  }
}

const isEmpty = ({ bookmarks, deleted, tags, deleted_tags, reset }: Changes): boolean =>
  !reset && bookmarks.length + deleted.length + tags.length + deleted_tags.length === 0;

/**
 * Waits before the next poll, longer after each failure. Stops waiting when the network is back, or when the user has
 * signed in.
 */
async function pauseAfter(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
  if (!navigator.onLine) sayConnection(texts.connection.offline);
  else if (failures > 1 && !hasCode(error, 'RATE_LIMITED')) sayConnection(texts.connection.unreachable);
  const askedMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
  const ended = new AbortController();
  const end = () => ended.abort();
  const listening = { signal: ended.signal };
  addEventListener('online', end, listening);
  signals.addEventListener('message', ({ data }) => data === 'signed-in' && end(), listening);
  // These codes mean that the session can no longer be used. So there is no poll until the user signs in again.
  const isSignedOut = hasCode(error, 'INVALID_TOKEN') || hasCode(error, 'ACCOUNT_SUSPENDED');
  const pauseMs = isSignedOut
    ? Number.POSITIVE_INFINITY
    : Math.max(askedMs, backoffMs(failures, Math.random));
  await sleep(systemClock, pauseMs, AbortSignal.any([signal, ended.signal])).catch(() => {});
  end();
}
