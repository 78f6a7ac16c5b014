import { ApiError } from '../client/errors.ts';
import { backoffMs, PollPause, sleep, systemClock } from '../client/timing.ts';
import type { Changes } from '../domain/resources.ts';
import { hasCode } from './errors.ts';
import { sayConnection } from './notices.ts';
import { ask, client, signals } from './session.ts';
import { texts } from './texts.ts';

/**
 * Reports changes soon after they are made elsewhere. A lock ensures that only one tab of the browser polls. That tab
 * passes each page of changes to the other tabs. When it closes, another tab takes the lock. Every tab keeps the cursor
 * of the last page, so the new polling tab continues from that cursor. Applying the same page twice does no harm.
 */

const timing = { clock: systemClock, random: Math.random };

/** The longest time in ms from a change until the response of a held poll reports it. */
const LATE_MS = 5_000;

/**
 * If a poll returns nothing and took less than this many ms, the service probably did not hold it. In that case, the
 * page waits longer before the next poll.
 */
const SHORT_MS = 1_000;

export interface Following {
  /** Starts polling. While another tab polls, waits until that tab stops. */
  resume(): void;
  /** Stops polling until `resume`. A page in the back/forward cache must hold neither a poll nor the lock. */
  pause(): void;
  /**
   * Skips all changes that were made until now. Call it after `pause`. Afterwards, read everything that the page shows,
   * and call `resume`. If the request fails, no change is skipped.
   */
  skip(): Promise<void>;
}

/**
 * What the polling tab sends to the other tabs: a page of changes and two times. All changes of this page were made
 * after `sinceMs`. `askedMs` is when the page was requested.
 */
interface Message {
  page: Changes;
  sinceMs: number;
  askedMs: number;
}

/**
 * Calls `onChanges` with every page of changes from now on. `sinceMs` is a time before all changes of that page.
 * Resolves when it has the cursor from which polling will start. Polling starts when the caller calls `resume`. The
 * caller reads its bookmarks in between, so it misses no change.
 */
export async function followChanges(
  userEmail: string,
  onChanges: (page: Changes, sinceMs: number) => void,
): Promise<Following> {
  const name = `changes of ${userEmail}`;
  let askedMs = Date.now();
  let cursor = '';
  let stopping = new AbortController();
  let channel: BroadcastChannel | undefined;

  const apply = (message: Message) => {
    cursor = message.page.cursor;
    askedMs = message.askedMs;
    onChanges(message.page, message.sinceMs);
  };
  const listen = () => {
    if (channel !== undefined) return;
    channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }: MessageEvent<Message>) => apply(data);
  };
  const begin = async () => {
    listen();
    askedMs = Date.now();
    const start = await ask(() => client.readChanges({ from: 'now' }));
    cursor = start.cursor;
  };
  await begin();
  const lead = (signal: AbortSignal) =>
    poll(
      () => cursor,
      signal,
      (page, nowAskedMs) => {
        // A held poll found nothing when it began. So the changes that it returns were made later, and at most
        // `LATE_MS` ago. If a poll was not held, it is certain only that the changes were made after the previous
        // request.
        const sinceMs = page.waited ? Math.max(nowAskedMs, Date.now() - LATE_MS) : askedMs;
        const message = { page, sinceMs, askedMs: nowAskedMs };
        channel?.postMessage(message);
        apply(message);
      },
    );
  return {
    resume() {
      listen();
      stopping = new AbortController();
      const { signal } = stopping;
      void whenAlone(name, signal, () => lead(signal)).catch(() => {});
    },
    pause() {
      stopping.abort();
      channel?.close();
      channel = undefined;
    },
    skip: () => begin().catch(() => {}),
  };
}

/** Runs a function in one tab at a time. Without TLS, browsers offer no locks, so all tabs run it at the same time. */
const whenAlone = (name: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> =>
  'locks' in navigator ? navigator.locks.request(name, { signal }, run) : run();

/** Polls until the signal is aborted. Passes every page to `onPage`, with the time of its request. */
async function poll(
  cursor: () => string,
  signal: AbortSignal,
  onPage: (page: Changes, askedMs: number) => void,
): Promise<void> {
  let attempt = new AbortController();
  // A held request does not fail by itself when the network is lost.
  addEventListener('offline', () => attempt.abort(), { signal });
  const pause = new PollPause(timing);
  for (let failures = 0; !signal.aborted; ) {
    const askedMs = Date.now();
    attempt = new AbortController();
    try {
      const page = await ask(() =>
        client.readChanges(
          { cursor: cursor(), wait: true, limit: 500 },
          { signal: AbortSignal.any([signal, attempt.signal]), retryForMs: 0, onHeaders: pause.onHeaders },
        ),
      );
      if (failures > 0) sayConnection(undefined);
      failures = 0;
      onPage(page, askedMs);
      if (!page.has_more && isEmpty(page)) {
        const wasShort = !page.waited && Date.now() - askedMs < SHORT_MS;
        await pause.wait(wasShort, signal);
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
  const retryAfterMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
  const ended = new AbortController();
  const endPause = () => ended.abort();
  const untilEnded = { signal: ended.signal };
  addEventListener('online', endPause, untilEnded);
  signals.addEventListener('message', ({ data }) => data === 'signed-in' && endPause(), untilEnded);
  // These codes mean that the session can no longer be used. So there is no poll until the user signs in again.
  const isSignedOut = hasCode(error, 'INVALID_TOKEN') || hasCode(error, 'ACCOUNT_SUSPENDED');
  const pauseMs = isSignedOut
    ? Number.POSITIVE_INFINITY
    : Math.max(retryAfterMs, backoffMs(failures, Math.random));
  await sleep(systemClock, pauseMs, AbortSignal.any([signal, ended.signal])).catch(() => {});
  // Aborting `ended` removes the two listeners.
  endPause();
}
