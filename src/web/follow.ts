import { ApiError } from '../client/errors.ts';
import { backoffMs, pausePolling, sleep, systemClock } from '../client/timing.ts';
import type { Changes } from '../domain/resources.ts';
import { hasCode } from './errors.ts';
import { sayConnection } from './notices.ts';
import { ask, client, signals } from './session.ts';
import { texts } from './texts.ts';

/**
 * Reports changes made elsewhere as they happen. A lock lets only one tab of a browser poll. That tab passes each page
 * of changes to the others. When it closes, another tab takes the lock. Every tab keeps the cursor of the last page, so
 * the tab that polls next continues there. Applying a page twice does no harm.
 */

const timing = { clock: systemClock, random: Math.random };

/** A held poll reports a change at most this long after it was made. */
const LATE_MS = 5_000;

/** A shorter poll was not held, so it is not repeated at once. */
const SHORT_MS = 1_000;

interface Following {
  /** Starts polling, unless another tab does. */
  resume(): void;
  /** Stops polling until `resume`. A page in the back/forward cache must not hold a poll or a lock. */
  pause(): void;
}

/**
 * A page of changes, as tabs pass it on. All its changes were made after `sinceMs`, and all later ones after
 * `askedMs`.
 */
interface Message {
  page: Changes;
  sinceMs: number;
  askedMs: number;
}

/**
 * Calls `onChanges` with every page of changes from now on, and with a time before all of them. Resolves once the
 * starting point is fixed. It polls only after `resume`, which the caller calls after it has read the collection.
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
  const now = await ask(() => client.readChanges({ from: 'now' }));
  const lead = (signal: AbortSignal) =>
    poll(
      () => cursor ?? now.cursor,
      signal,
      (page, nowAskedMs) => {
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

/** Runs a function in one tab at a time. Browsers have no locks without TLS. Then every tab polls. */
const whenAlone = (name: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> =>
  'locks' in navigator ? navigator.locks.request(name, { signal }, run) : run();

/** Polls until the signal aborts. Passes every page to `onPage`. */
async function poll(
  cursor: () => string,
  signal: AbortSignal,
  onPage: (page: Changes, askedMs: number) => void,
): Promise<void> {
  let attempt = new AbortController();
  // A held request does not notice that the network is gone.
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

/** Waits longer after each failure. Stops waiting when the network is back, or when the user has signed in. */
async function pauseAfter(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
  if (!navigator.onLine) sayConnection(texts.connection.offline);
  else if (failures > 1 && !hasCode(error, 'RATE_LIMITED')) sayConnection(texts.connection.unreachable);
  const askedMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
  const ended = new AbortController();
  const end = () => ended.abort();
  const listening = { signal: ended.signal };
  addEventListener('online', end, listening);
  signals.addEventListener('message', ({ data }) => data === 'signed-in' && end(), listening);
  // If the user declined to sign in again, the poll waits until they do.
  const isSignedOut = hasCode(error, 'INVALID_TOKEN') || hasCode(error, 'ACCOUNT_SUSPENDED');
  const pauseMs = isSignedOut
    ? Number.POSITIVE_INFINITY
    : Math.max(askedMs, backoffMs(failures, Math.random));
  await sleep(systemClock, pauseMs, AbortSignal.any([signal, ended.signal])).catch(() => {});
  end();
}
