import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../support/post.ts';
import type { Principal } from '../support/users.ts';

/** Clients that run while the operator works. They add, read their additions by sync, and import. */

/** The time of one add and one sync: 86 of the 100 requests per minute that a token has. */
const ROUND_MS = 1_400;

/** Above `IMPORT_INLINE_BYTES`, so that a worker runs it. */
const IMPORT_ENTRIES = 700;
const IMPORT_COMMENT = 'x'.repeat(2_000);
const IMPORT_PAUSE_MS = 3_000;

/** Roughly as many tries as the shipped client makes in a minute. */
const TRIES = 4;

/** What one client sent and received. */
interface Journal {
  user: Principal;
  /** Urls of acknowledged adds and imports, in order. */
  acknowledged: string[];
  /** Urls received by sync. */
  synced: Set<string>;
  cursor: number;
}

/** A failed request, and the operator's step at that time. */
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
  /** The operator's current step. */
  during = 'install';
  /** Successful requests, by the operator's step. */
  readonly served = new Map<string, number>();
  /** Those of them that got 503 first. */
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
   * Sends a request like a correct client: after a 503 it waits for `Retry-After` and retries with the same key, so
   * that nothing is done twice.
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

  /** Only its deadline or the end of its replica ends this poll. */
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

  /** Stops the writers and awaits their requests. Does not await held polls, which end with their replicas. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const writers = this.#loops.splice(0).slice(0, this.journals.length);
    await Promise.all(writers);
  }

  /** The acknowledged urls that an export lacks, and those of a writer that its sync never returned. */
  async findLost({ user, synced, cursor }: Journal, acknowledged: readonly string[]): Promise<string[]> {
    const exported = await this.#ask(user, '/export', {});
    const held = new Set((exported?.bookmarks ?? []).map(({ url }: { url: string }) => url));
    return acknowledged.filter((url) => !held.has(url) || (cursor > 0 && !synced.has(url)));
  }
}
