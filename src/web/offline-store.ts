import type { Bookmark, NewBookmark } from '../domain/resources.ts';

/** What this browser keeps for times without a network: the newest bookmarks, and new ones that wait to be sent. */

export interface Waiting {
  /** Sent as `Idempotency-Key`: however often it is sent, it is added once. */
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

/** What is kept; undefined where nothing is. */
export function readKept(): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** Deletes all that is kept. */
export const forgetKept = (): void => localStorage.removeItem(KEY);

/** Changes what is kept of an account. Keeps nothing once the session has ended, nor anything of another account. */
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
