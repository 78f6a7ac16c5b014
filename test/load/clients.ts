import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../support/post.ts';
import type { Principal } from '../support/users.ts';

/** What the clients of a run received. */
interface Seen {
  /** By path: the number of requests that were answered with 200. */
  answered: Map<string, number>;
  /** Responses with another status, and lost connections. */
  failures: string[];
  /** By user: the urls of acknowledged adds. */
  added: Map<Principal, string[]>;
  /** By user: the urls that the user's follower received by sync. */
  followed: Map<Principal, string[]>;
}

/** Running clients. */
export interface Clients {
  readonly seen: Seen;
  /**
   * Stops the writers, waits until the followers have received all bookmarks that were added, and aborts the idle
   * polls.
   */
  stop(): Promise<void>;
}

/** Every writer adds this url at the end. It tells the follower that no more bookmarks come. */
const LAST_URL = 'https://last.example/';

/** The number of polls of an idle user. A replica holds at most 16 polls of one token. */
const IDLE_POLLS = 12;

/**
 * For each user, starts a writer, a searcher and a long-polling follower. The writer and the searcher wait `pauseMs`
 * after a response before they send the next request. Also starts polls for each idle user. These polls find nothing,
 * so each ends only at its deadline, at the end of its replica, or at `stop`.
 */
export function startClients(
  origin: string,
  users: readonly Principal[],
  idleUsers: readonly Principal[],
  pauseMs: number,
): Clients {
  const seen: Seen = { answered: new Map(), failures: [], added: new Map(), followed: new Map() };
  const end = new AbortController();
  let isWriting = true;

  const ask = async (user: Principal, path: string, body: unknown) => {
    try {
      const response = await post(origin, path, body, { token: user.token, signal: end.signal });
      if (response.status !== 200) seen.failures.push(`${path}: ${response.status} ${response.text}`);
      else seen.answered.set(path, (seen.answered.get(path) ?? 0) + 1);
      return response.status === 200 ? response.body : undefined;
    } catch (error) {
      if (!end.signal.aborted) seen.failures.push(`${path}: ${describe(error)}`);
      return undefined;
    }
  };
  const write = async (user: Principal) => {
    const added: string[] = [];
    seen.added.set(user, added);
    const add = async (url: string) => {
      if (await ask(user, '/bookmarks/add', { url })) added.push(url);
    };
    for (let n = 0; isWriting; n += 1) {
      await add(`https://example.org/${n}`);
      await sleep(pauseMs);
    }
    await add(LAST_URL);
  };
  const search = async (user: Principal) => {
    while (isWriting) {
      await ask(user, '/bookmarks/search', { query: 'example' });
      await sleep(pauseMs);
    }
  };
  const follow = async (user: Principal) => {
    const followed: string[] = [];
    seen.followed.set(user, followed);
    let cursor = 0;
    while (!followed.includes(LAST_URL)) {
      const page = await ask(user, '/bookmarks/sync', { cursor, wait: true });
      cursor = page?.cursor ?? cursor;
      followed.push(...(page?.bookmarks ?? []).map(({ url }: { url: string }) => url));
    }
  };
  const poll = async (user: Principal) => {
    while (!end.signal.aborted) {
      await ask(user, '/bookmarks/sync', { cursor: Number.MAX_SAFE_INTEGER, wait: true });
    }
  };

  const writers = users.flatMap((user) => [write(user), search(user)]);
  const followers = users.map(follow);
  const idlers = idleUsers.flatMap((user) => Array.from({ length: IDLE_POLLS }, () => poll(user)));
  return {
    seen,
    async stop() {
      isWriting = false;
      await Promise.all([...writers, ...followers]);
      end.abort();
      await Promise.all(idlers);
    },
  };
}

const describe = (error: unknown) =>
  `${(error as Error).message} ${((error as Error).cause as Error | undefined)?.message ?? ''}`;
