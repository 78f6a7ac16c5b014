import { EndpointClient } from '../client/client.ts';
import type { RetryEvent } from '../client/requester.ts';
import type { Profile } from '../domain/resources.ts';
import { formatClock } from './dates.ts';
import { hasCode } from './errors.ts';
import { sayConnection } from './notices.ts';
import { askToSignIn } from './sign-in.ts';
import { texts } from './texts.ts';

/**
 * The service's own client, with the session's cookie instead of a token: the browser adds it, and no script can read
 * it. Every call goes through `ask`, so that an expired session costs nobody what they typed.
 */

export const API_BASE = `${location.origin}/web/api/v1`;

/** What is left of the quota by the last response; searches while one types keep some for everything else. */
let left = Number.POSITIVE_INFINITY;

export const quotaLeft = (): number => left;

const watchedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const remaining = response.headers.get('x-ratelimit-remaining');
  if (remaining !== null) left = Number(remaining);
  if (left > 0 && response.status < 429) noteSuccess(response.url.slice(API_BASE.length));
  return response;
};

/** Paths whose requests are being tried again: only when all of them have gone through is all well. */
const retried = new Set<string>();

function noteSuccess(path: string): void {
  retried.delete(path);
  if (retried.size === 0) sayConnection(undefined);
}

function sayRetry({ path, error, waitMs }: RetryEvent): void {
  // The poll speaks for itself.
  if (path === '/bookmarks/changes') return;
  retried.add(path);
  if (error.status === 429) sayConnection(texts.connection.limited(formatClock(Date.now() + waitMs)));
  else if (error.status >= 500) sayConnection(texts.connection.busy(Math.ceil(waitMs / 1_000)));
  else sayConnection(navigator.onLine ? texts.connection.unreachable : texts.connection.offline);
}

export const client = new EndpointClient({ baseUrl: API_BASE, fetch: watchedFetch, onRetry: sayRetry });

/** Makes calls of the API; where the session has ended meanwhile, asks to sign in again, and then goes on. */
export async function ask<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!hasCode(error, 'INVALID_TOKEN')) throw error;
      signals.postMessage('ended');
      if (!(await askToSignIn())) throw error;
      await requireSameUser();
    }
  }
}

let user: Profile | undefined;

/** Reads who is signed in; undefined for nobody. */
export async function findUser(): Promise<Profile | undefined> {
  if (!/(^|; )signed-in=1(;|$)/.test(document.cookie)) return undefined;
  try {
    // Without a network nobody should wait: see `offline-page.ts`.
    user = await client.profile(navigator.onLine ? {} : { retryForMs: 0 });
  } catch (error) {
    if (!hasCode(error, 'INVALID_TOKEN')) throw error;
    user = undefined;
  }
  return user;
}

/** Who signed in again may be somebody else: then nothing that the page shows is theirs. */
async function requireSameUser(): Promise<void> {
  const before = user?.email;
  const after = await client.profile();
  if (before !== undefined && after.email !== before) {
    location.reload();
    await new Promise(() => {});
  }
}

/** What the tabs of a browser tell each other about the session they share. */
export const signals = new BroadcastChannel('session');

/** Sends JSON to a path beside the API; rejects with the response where it is none of success. */
export async function post<Body>(path: string, body: object): Promise<Body> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw response;
  return (await response.json()) as Body;
}

/** Learns from the other tabs that the session has ended; asks then to sign in again. */
export function watchSession(): void {
  signals.addEventListener('message', ({ data }) => {
    if (data === 'signed-out') location.assign('/');
    if (data === 'ended') void ask(() => client.profile()).catch(() => {});
  });
}
