import type { Bookmark, NewBookmark } from '../domain/resources.ts';
import { hasSession } from './session.ts';

/**
 * The data that this browser keeps for use without a network: the newest bookmarks, and new bookmarks that wait to be
 * sent.
 */

export interface Waiting {
  /** Sent as `Idempotency-Key`, so that the bookmark is added only once. */
  key: string;
  bookmark: NewBookmark;
}

export interface Kept {
  email: string;
  bookmarks: Pick<Bookmark, 'url' | 'title' | 'created_at'>[];
  waiting: Waiting[];
}

const KEY = 'offline';

const MOST_KEPT = 100;

/** Returns the stored data. Undefined if there is none. */
export function readKept(): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** Deletes all stored data. */
export const forgetKept = (): void => localStorage.removeItem(KEY);

/**
 * Deletes all data except the bookmarks that wait to be sent. These bookmarks are sent when the same user signs in
 * again, and deleted when another user signs in.
 */
export function forgetShown(): void {
  const kept = readKept();
  if (kept === undefined || kept.waiting.length === 0) forgetKept();
  else localStorage.setItem(KEY, JSON.stringify({ ...kept, bookmarks: [] }));
}

/** Deletes the stored data unless it belongs to this account. */
export function forgetOthers(email: string): void {
  if (readKept()?.email !== email) forgetKept();
}

/** Stores a new bookmark, so that it is sent later. Throws if the browser's storage is full. */
export const keepWaiting = (email: string, one: Waiting): void =>
  keep(email, { waiting: [one, ...(readKept()?.waiting ?? [])] });

/** Updates the stored data of an account. If the session has ended, calls `forgetShown` instead. */
export function keep(email: string, change: Partial<Pick<Kept, 'bookmarks' | 'waiting'>>): void {
  if (!hasSession()) {
    forgetShown();
    return;
  }
  forgetOthers(email);
  const { bookmarks, waiting } = { bookmarks: [], waiting: [], ...readKept(), ...change };
  const newest = bookmarks.slice(0, MOST_KEPT);
  const kept: Kept = {
    email,
    bookmarks: newest.map(({ url, title, created_at }) => ({ url, title, created_at })),
    waiting,
  };
  localStorage.setItem(KEY, JSON.stringify(kept));
}
