import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../support/post.ts';
import type { Principal } from '../support/users.ts';

/**
 * Clients that send requests while the operator works. They add bookmarks, read their additions by sync, and import.
 */

/**
 * The time for one add and one sync. At this rate, a client sends 86 of the 100 requests per minute that its token may
 * send.
 */
const ROUND_MS = 1_400;

/** The size of an import. The body is larger than `IMPORT_INLINE_BYTES`, so a worker runs the import. */
const IMPORT_ENTRIES = 700;
const IMPORT_COMMENT = 'x'.repeat(2_000);
const IMPORT_PAUSE_MS = 3_000;

/** The most times that a client here sends the same request. The service's client library may retry more often. */
const TRIES = 4;

/** What one client sent and received. */
interface Journal {
  user: Principal;
  /** The urls of acknowledged adds and imports, in order. */
  acknowledged: string[];
  /** The urls that the client received by sync. */
  synced: Set<string>;
  cursor: number;
}

/** A failed request, and the step that the operator was doing. */
export interface Failure {
  during: string;
  what: string;
}

const WRITES: ReadonlySet<string> = new Set(['/bookmarks/add', '/import']);

const count = (counts: Map<string, number>, during: string): void =>
  void counts.set(during, (counts.get(during) ?? 0) + 1);

/** Running clients. */
export class Traffic {
  journals: Journal[] = [];
  readonly failures: Failure[] = [];
  /** The step that the operator is doing. */
  during = 'install';
  /** The number of successful requests in each of the operator's steps. */
  readonly served = new Map<string, number>();
  /** How many of the successful requests in each step first got 503. */
  readonly retried = new Map<string, number>();
  readonly #origin: string;
  readonly #loops: Promise<void>[] = [];
  #isOver = false;
  #round = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Sets the users of the clients. */
  enter(users: readonly Principal[]): void {
    this.journals = users.map((user) => ({ user, acknowledged: [], synced: new Set(), cursor: 0 }));
  }

  /** Starts all clients at different times. The last user imports, the others add. */
  start(): void {
    this.#isOver = false;
    const [importer, ...writers] = this.journals.slice().reverse();
    this.#loops.push(
      this.#import(importer!),
      ...writers.map(async (journal, n) => {
        await sleep((ROUND_MS * n) / writers.length);
        await this.#write(journal);
      }),
      ...writers.map((journal) => this.#poll(journal)),
    );
  }

  /**
   * Sends a request as a correct client does. After a 503, waits as long as `Retry-After` says, and retries with the
   * same key, so that nothing is done twice.
   */
  async #ask(user: Principal, path: string, body: object) {
    const { during } = this;
    const headers = WRITES.has(path) ? { 'idempotency-key': randomUUID() } : {};
    try {
      for (let tries = 1; ; tries += 1) {
        const response = await post(this.#origin, path, body, { token: user.token, headers });
        const { status, text } = response;
        if (status === 200) {
          count(this.served, during);
          if (tries > 1) count(this.retried, during);
          return response.body;
        }
        if (status !== 503 || tries === TRIES) {
          this.failures.push({ during, what: `${path}: ${status} ${text.slice(0, 200)}` });
          return undefined;
        }
        await sleep(Number(response.headers.get('retry-after')) * 1_000);
      }
    } catch (error) {
      const { message, cause } = error as Error;
      this.failures.push({
        during,
        what: `${path}: ${message} ${(cause as Error | undefined)?.message ?? ''}`,
      });
    }
    return undefined;
  }

  async #write(journal: Journal): Promise<void> {
    while (!this.#isOver) {
      const begin = performance.now();
      const url = `https://example.org/${++this.#round}`;
      const added = await this.#ask(journal.user, '/bookmarks/add', {
        url,
        tags: [`tag ${this.#round % 7}`],
      });
      if (added) journal.acknowledged.push(url);
      await this.#sync(journal);
      await sleep(Math.max(0, ROUND_MS - (performance.now() - begin)));
    }
  }

  async #sync(journal: Journal): Promise<void> {
    for (;;) {
      const page = await this.#ask(journal.user, '/bookmarks/sync', { cursor: journal.cursor });
      if (page === undefined) return;
      for (const { url } of page.bookmarks) journal.synced.add(url);
      journal.cursor = page.cursor;
      if (!page.has_more) return;
    }
  }

  /**
   * Sends polls. Nothing comes after their cursor, so a poll ends only at its deadline or when its replica ends.
   */
  async #poll({ user }: Journal): Promise<void> {
    while (!this.#isOver)
      if (!(await this.#ask(user, '/bookmarks/sync', { cursor: Number.MAX_SAFE_INTEGER, wait: true })))
        await sleep(ROUND_MS);
  }

  async #import(journal: Journal): Promise<void> {
    while (!this.#isOver) {
      const round = ++this.#round;
      const bookmarks = Array.from({ length: IMPORT_ENTRIES }, (_, n) => ({
        url: `https://example.org/${round}/${n}`,
        comment: IMPORT_COMMENT,
      }));
      const imported = await this.#ask(journal.user, '/import', { bookmarks });
      if (imported?.imported === IMPORT_ENTRIES)
        journal.acknowledged.push(...bookmarks.map(({ url }) => url));
      await sleep(IMPORT_PAUSE_MS);
    }
  }

  /** Stops the writers and waits for their requests. Does not wait for held polls, which end with their replicas. */
  async stop(): Promise<void> {
    this.#isOver = true;
    // `start` adds the loops that write, one for each journal, before the loops that poll.
    const writers = this.#loops.splice(0).slice(0, this.journals.length);
    await Promise.all(writers);
  }

  /**
   * Returns the acknowledged urls that an export lacks. For a client that syncs, also returns the acknowledged urls
   * that it never received by sync.
   */
  async findLost({ user, synced, cursor }: Journal, acknowledged: readonly string[]): Promise<string[]> {
    const exported = await this.#ask(user, '/export', {});
    const held = new Set((exported?.bookmarks ?? []).map(({ url }: { url: string }) => url));
    return acknowledged.filter((url) => !held.has(url) || (cursor > 0 && !synced.has(url)));
  }
}
