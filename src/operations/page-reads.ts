import { setTimeout as sleep } from 'node:timers/promises';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { invalidToken } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { findNewBookmarks, type Page, readPage, readPageForAll } from '../store/bookmarks.ts';
import {
  type ChangesPage,
  type ChangesStart,
  findChanges,
  readChanges,
  readChangesForAll,
} from '../store/changes.ts';
import type { Database } from '../store/database.ts';

/**
 * The longest time that a batch waits for the previous batch of its page. If there is a previous batch, the time limit
 * of the waiting batch's statement is shorter by this time.
 */
const WAIT_BEHIND_MS = 500;

/**
 * The maximum number of reads in a batch. It limits how long the event loop is blocked, because all responses of a
 * batch are written in one turn of the event loop.
 */
const BATCH_SIZE = 250;

/** The pause before each batch of checks. It limits checks to ten statements per second, even if many polls wait. */
const CHECK_PAUSE_MS = 100;

/** The question of a waiting poll: is there anything new after `start`? */
export interface Check<Start> {
  principal: Principal;
  start: Start;
}

/** How to read one kind of page, for one principal or for several tokens of one user. */
interface PageSource<Start, Result> {
  /** Returns a text that identifies a start: equal for equal starts, and different for different ones. */
  nameOf(start: Start): string;
  read(db: Database, principal: Principal, start: Start, limit: number, deadlineMs: number): Promise<Result>;
  readForAll(
    db: Database,
    principals: readonly Principal[],
    start: Start,
    limit: number,
    deadlineMs: number,
  ): Promise<Result & { valid: string[] }>;
  /** Returns the positions of the checks for which there is news, or whose token is no longer valid. */
  findNews(db: Database, checks: readonly Check<Start>[], deadlineMs: number): Promise<number[]>;
}

/** The pages of `/bookmarks/sync`: bookmarks after an id, in ascending order (docs/contract.md, section 4.2). */
export const SYNC_PAGES: PageSource<number, Page> = {
  nameOf: String,
  read: readPage,
  readForAll: readPageForAll,
  findNews: findNewBookmarks,
};

/** The pages of `/bookmarks/changes`: changes after a position. */
export const CHANGES_PAGES: PageSource<ChangesStart, ChangesPage> = {
  nameOf: JSON.stringify,
  read: readChanges,
  readForAll: readChangesForAll,
  findNews: findChanges,
};

interface BatchResult<Result> {
  page: Result;
  /** The hashes, in hex, of the batch's tokens that are still valid. */
  valid: ReadonlySet<string>;
}

/** The principals whose reads share one statement. */
interface Batch<Result> {
  /** The key is `Principal.key`. */
  principals: Map<string, Principal>;
  /** The number of reads. Each read counts, even if several have the same principal. */
  size: number;
  isSent: boolean;
  result: Promise<BatchResult<Result>>;
}

/**
 * Reads pages. The devices of an account are notified together, and then all of them request the same page. So one
 * statement serves all reads of the same page that arrive together. Such reads form a batch. A batch is in one of three
 * states:
 *
 * - **open**: reads of the same page may join, up to `BATCH_SIZE`. The batch waits until the previous batch of this
 *   page has ended, but at most `WAIT_BEHIND_MS`. Then it waits for a permit of the user.
 * - **sent**: the statement of the batch runs. A read that arrives now joins the next batch, so a page is never older
 *   than the request for it.
 * - **ended**: each read has its page or its error.
 */
export class PageReader<Start, Result> {
  readonly #database: Database;
  readonly #source: PageSource<Start, Result>;
  readonly #permits: Semaphore<number>;
  readonly #deadlineMs: number;
  /** For each page, the latest batch, until that batch has ended. */
  readonly #last = new Map<string, Batch<Result>>();
  /** The checks that wait for the next statement. */
  #checks: (Check<Start> & { news: PromiseWithResolvers<boolean> })[] = [];
  #isChecking = false;

  /** Each batch of reads takes one of its user's `permits`. `deadlineMs` is the time limit for a statement. */
  constructor(
    database: Database,
    source: PageSource<Start, Result>,
    permits: Semaphore<number>,
    deadlineMs: number,
  ) {
    this.#database = database;
    this.#source = source;
    this.#permits = permits;
    this.#deadlineMs = deadlineMs;
  }

  /** Reads the principal's page. Throws `INVALID_TOKEN` if the token is no longer valid. */
  async read(principal: Principal, start: Start, limit: number): Promise<Result> {
    const pageName = `${principal.userId} ${limit} ${this.#source.nameOf(start)}`;
    const last = this.#last.get(pageName);
    const mayJoin = last !== undefined && !last.isSent && last.size < BATCH_SIZE;
    const batch = mayJoin ? last : this.#open(pageName, last, start, limit);
    batch.principals.set(principal.key, principal);
    batch.size += 1;
    const { page, valid } = await batch.result;
    if (!valid.has(principal.hash.toString('hex'))) throw invalidToken();
    return page;
  }

  /**
   * Whether the principal should read the page again, because there is news or the token is no longer valid. When Redis
   * fails, all polls may ask at the same time. So one statement answers for the polls of all users.
   */
  hasNews(principal: Principal, start: Start): Promise<boolean> {
    const news = Promise.withResolvers<boolean>();
    this.#checks.push({ principal, start, news });
    if (!this.#isChecking) void this.#runChecks();
    return news.promise;
  }

  async #runChecks(): Promise<void> {
    this.#isChecking = true;
    while (this.#checks.length > 0) {
      await sleep(CHECK_PAUSE_MS);
      const checks = this.#checks;
      this.#checks = [];
      try {
        const withNews = new Set(await this.#source.findNews(this.#database, checks, this.#deadlineMs));
        for (const [position, { news }] of checks.entries()) news.resolve(withNews.has(position));
      } catch (error) {
        for (const { news } of checks) news.reject(error);
      }
    }
    this.#isChecking = false;
  }

  /** Opens a batch. If there is a `previous` batch of the same page, the new batch waits for it. */
  #open(pageName: string, previous: Batch<Result> | undefined, start: Start, limit: number): Batch<Result> {
    const batch: Batch<Result> = { principals: new Map(), size: 0, isSent: false, result: undefined! };
    this.#last.set(pageName, batch);
    batch.result = this.#run(batch, previous, start, limit).finally(() => {
      if (this.#last.get(pageName) === batch) this.#last.delete(pageName);
    });
    return batch;
  }

  async #run(
    batch: Batch<Result>,
    previous: Batch<Result> | undefined,
    start: Start,
    limit: number,
  ): Promise<BatchResult<Result>> {
    // Even without a previous batch, this `await` lets reads that arrive at the same moment join the batch.
    await (previous && waitForEnd(previous));
    const deadlineMs = previous ? this.#deadlineMs - WAIT_BEHIND_MS : this.#deadlineMs;
    const [principal] = batch.principals.values();
    return this.#permits.run(principal!.userId, () => this.#send(batch, start, limit, deadlineMs));
  }

  async #send(
    batch: Batch<Result>,
    start: Start,
    limit: number,
    deadlineMs: number,
  ): Promise<BatchResult<Result>> {
    batch.isSent = true;
    const principals = [...batch.principals.values()];
    const [principal] = principals;
    if (principals.length > 1) {
      const page = await this.#source.readForAll(this.#database, principals, start, limit, deadlineMs);
      return { page, valid: new Set(page.valid) };
    }
    // `read` throws if the token is not valid.
    const page = await this.#source.read(this.#database, principal!, start, limit, deadlineMs);
    return { page, valid: new Set([principal!.hash.toString('hex')]) };
  }
}

/** Waits until a batch has ended, but at most `WAIT_BEHIND_MS`. Never rejects. */
const waitForEnd = ({ result }: Batch<unknown>): Promise<unknown> =>
  Promise.race([result.catch(() => {}), sleep(WAIT_BEHIND_MS, undefined, { ref: false })]);
