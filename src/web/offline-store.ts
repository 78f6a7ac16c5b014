import type { Bookmark, NewBookmark } from '../domain/resources.ts';

/**
 * The data that this browser keeps for use without a network: the newest bookmarks, and new ones that wait to be
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
 * Updates the stored data of an account. Deletes all of it if the session has ended. Drops the data of another
 * account.
 */
export function keep(email: string, change: Partial<Pick<Kept, 'bookmarks' | 'waiting'>>): void {
  if (!/(^|; )signed-in=1(;|$)/.test(document.cookie)) {
    forgetKept();
    return;
  }
  const before = readKept();
  const { bookmarks, waiting } = {
    bookmarks: [],
    waiting: [],
    ...(before?.email === email && before),
    ...change,
  };
  const kept: Kept = {
    email,
    bookmarks: bookmarks
      .slice(0, MOST_KEPT)
      .map(({ url, title, created_at }) => ({ url, title, created_at })),
    waiting,
  };
  localStorage.setItem(KEY, JSON.stringify(kept));
}
