import { setTimeout as sleep } from 'node:timers/promises';
import type { Principal } from '../domain/tokens.ts';
import type { Semaphore } from '../flow/semaphore.ts';
import { findNewBookmarks, type Page, readPage } from './bookmarks.ts';
import { type ChangesPage, type ChangesStart, findChanges, readChanges } from './changes.ts';
import type { Database } from './driver/database.ts';

/** The pause before each batch of checks. It limits checks to ten statements per second, even if many polls wait. */
const CHECK_PAUSE_MS = 100;

/** The question of a waiting poll: is there anything new after `start`? */
export interface Check<Start> {
  principal: Principal;
  start: Start;
}

/** How to read one kind of page, and how to find out whether it has news. */
interface PageSource<Start, Result> {
  read(db: Database, principal: Principal, start: Start, limit: number, deadlineMs: number): Promise<Result>;
  /** Returns the positions of the checks for which there is news, or whose token is no longer valid. */
  findNews(db: Database, checks: readonly Check<Start>[], deadlineMs: number): Promise<number[]>;
}

/** The pages of `/bookmarks/sync`: bookmarks after an id, in ascending order (docs/contract.md, section 4.2). */
export const SYNC_PAGES: PageSource<number, Page> = {
  read: readPage,
  findNews: findNewBookmarks,
};

/** The pages of `/bookmarks/changes`: changes after a position. */
export const CHANGES_PAGES: PageSource<ChangesStart, ChangesPage> = {
  read: readChanges,
  findNews: findChanges,
};

/** Reads the pages of one kind, and checks for held polls whether there is news. */
export class PageReader<Start, Result> {
  readonly #database: Database;
  readonly #source: PageSource<Start, Result>;
  readonly #permits: Semaphore<number>;
  readonly #deadlineMs: number;
  /** The checks that wait for the next statement. */
  #checks: (Check<Start> & { news: PromiseWithResolvers<boolean> })[] = [];
  #isChecking = false;

  /** Each read takes one of its user's `permits`. `deadlineMs` is the time limit for a statement. */
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
  read(principal: Principal, start: Start, limit: number): Promise<Result> {
    return this.#permits.run(principal.userId, () =>
      this.#source.read(this.#database, principal, start, limit, this.#deadlineMs),
    );
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
}
