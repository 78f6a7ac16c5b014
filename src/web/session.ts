import { EndpointClient } from '../client/client.ts';
import type { RequestOptions, RetryEvent } from '../client/requester.ts';
import type { Account } from '../domain/resources.ts';
import { formatClock } from './dates.ts';
import { hasCode, isUnreachable } from './errors.ts';
import { sayConnection } from './notices.ts';
import { texts } from './texts.ts';

/**
 * The page's client of the API. Instead of a token, it uses the session cookie, which scripts cannot read. Calls go
 * through `ask`, so that the user loses no input when the session expires.
 */

const API_BASE = `${location.origin}/web/api/v1`;

/**
 * The remaining quota that the latest response reported. Searches that run while the user types leave some of the quota
 * for other requests.
 */
let left = Number.POSITIVE_INFINITY;

export const quotaLeft = (): number => left;

/** The delay before a request that is not urgent. It is longer while little quota is left. */
export const delayMs = (usualMs: number): number => (left > 30 ? usualMs : 15_000);

const watchedFetch: typeof fetch = async (input, init) => {
  // With `keepalive`, the browser completes a deletion even if the user closes the page.
  const keepalive = String(input).endsWith('/bookmarks/delete');
  const response = await fetch(input, { ...init, keepalive });
  const remaining = response.headers.get('x-ratelimit-remaining');
  if (remaining !== null) left = Number(remaining);
  if (left > 0 && response.status < 429) noteSuccess(response.url.slice(API_BASE.length));
  return response;
};

/** The most ids that the service accepts in one request. */
const BATCH = 500;

/** How many days the trash keeps bookmarks. 0 means that there is no trash: deleted bookmarks are gone. */
export const trashDays = (): number =>
  Number(document.querySelector<HTMLMetaElement>('meta[name="trash-days"]')?.content);

/** True for an action on so many bookmarks that the page asks first and shows the progress. */
export const isLarge = (count: number): boolean => count > 100;

/**
 * Runs an action on many bookmarks. The page applies no changes meanwhile. Afterwards, it reads the list and the tags
 * again.
 */
export type RunQuietly = <T>(work: () => Promise<T>) => Promise<T>;

/** Splits ids into batches, one for each request. */
export const batchesOf = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, at) => ids.slice(at * BATCH, (at + 1) * BATCH));

/** Paths whose requests are being retried. The warning disappears when all of them have succeeded. */
const retried = new Set<string>();

function noteSuccess(path: string): void {
  retried.delete(path);
  if (retried.size === 0) sayConnection(undefined);
}

/** Dispatches an event when a request gets no response and is about to be sent again. The event's type is the path. */
export const unreached = new EventTarget();

function sayRetry({ path, error, waitMs }: RetryEvent): void {
  if (isUnreachable(error)) unreached.dispatchEvent(new Event(path));
  // `follow.ts` reports the failures of polls.
  if (path === '/bookmarks/changes') return;
  retried.add(path);
  if (error.status === 429) sayConnection(texts.connection.limited(formatClock(Date.now() + waitMs)));
  else if (error.status >= 500) sayConnection(texts.connection.busy(Math.ceil(waitMs / 1_000)));
  else sayConnection(navigator.onLine ? texts.connection.unreachable : texts.connection.offline);
}

export const client = new EndpointClient({ baseUrl: API_BASE, fetch: watchedFetch, onRetry: sayRetry });

/** How many times the user has signed in again on this page. */
let renewals = 0;

/**
 * Calls the API. If the session has ended, asks the user to sign in again and repeats the call. If the user has signed
 * in again since the call began, repeats it without asking, because the refused session is not the current one.
 */
export async function ask<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    const renewalsBefore = renewals;
    try {
      return await call();
    } catch (error) {
      if (!hasCode(error, 'INVALID_TOKEN')) throw error;
      if (renewals > renewalsBefore) continue;
      signals.postMessage('ended');
      const { askToSignIn } = await import('./sign-in.ts');
      if (!(await askToSignIn())) throw error;
      renewals++;
      await requireSameUser();
    }
  }
}

let user: Account | undefined;

/** Returns the e-mail address of the user who is signed in. */
export const userEmail = (): string => user?.email ?? '';

/** True if a cookie says that the browser has a session. The service may have ended the session since. */
export const hasSession = (): boolean => /(^|; )signed-in=1(;|$)/.test(document.cookie);

/** Returns the user who is signed in, or undefined. */
export async function findUser(options?: RequestOptions): Promise<Account | undefined> {
  if (!hasSession()) return undefined;
  try {
    user = await client.account(options);
  } catch (error) {
    if (!hasCode(error, 'INVALID_TOKEN')) throw error;
    user = undefined;
  }
  return user;
}

/** Returns whether the service responds, even if it responds with an error. */
export const isServiceReachable = (): Promise<boolean> =>
  client.profile({ retryForMs: 0 }).then(
    () => true,
    (error: unknown) => !isUnreachable(error),
  );

/** Reloads the page if another user has signed in, because the page shows the previous user's content. */
async function requireSameUser(): Promise<void> {
  const before = user?.email;
  const after = await client.profile();
  if (before !== undefined && after.email !== before) {
    location.reload();
    // Nothing else may run until the browser has left this page.
    await new Promise(() => {});
  }
}

/** Sends messages about the session between the tabs of a browser. */
export const signals = new BroadcastChannel('session');

/**
 * Reacts to other tabs: returns to the start page after a sign-out, asks to sign in again when the session has ended,
 * and reloads the page when another user has signed in. A page in the back/forward cache may miss these messages. So
 * when it is shown again, it checks which user is signed in.
 */
export function watchSession(): void {
  signals.addEventListener('message', ({ data }) => {
    if (data === 'signed-out') location.assign('/');
    if (data === 'ended') void ask(() => client.profile()).catch(() => {});
    if (data.user !== undefined && data.user !== user?.email) location.reload();
  });
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) void ask(requireSameUser).catch(() => location.reload());
  });
}
