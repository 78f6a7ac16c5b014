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

/** How long a batch waits for the one before it, at most; its statement then has that much less time. */
const WAIT_BEHIND_MS = 500;

/** Responses are written in one go, while nobody else is served: those of many polls go in parts. */
const BATCH_SIZE = 250;

/**
 * Checks are gathered for so long, and a batch of them waits for the one before it: at most ten statements a second,
 * however many polls are held.
 */
const CHECK_PAUSE_MS = 100;

/** What one poll asks for: whether there is something after its start. */
export interface Check<Start> {
  principal: Principal;
  start: Start;
}

/** How a kind of page is read, for one principal and for several tokens of one user. */
interface PageSource<Start, Result> {
  /** The same for equal starts. */
  nameOf(start: Start): string;
  read(db: Database, principal: Principal, start: Start, limit: number, deadlineMs: number): Promise<Result>;
  readForAll(
    db: Database,
    principals: readonly Principal[],
    start: Start,
    limit: number,
    deadlineMs: number,
  ): Promise<Result & { valid: string[] }>;
  /** The positions of those checks whose page has something, or whose token is no longer valid. */
  findNews(db: Database, checks: readonly Check<Start>[], deadlineMs: number): Promise<number[]>;
}

/** Bookmarks after an id, rising (spec 4.2). */
export const SYNC_PAGES: PageSource<number, Page> = {
  nameOf: String,
  read: readPage,
  readForAll: readPageForAll,
  findNews: findNewBookmarks,
};

/** What changed after a position. */
export const CHANGES_PAGES: PageSource<ChangesStart, ChangesPage> = {
  nameOf: JSON.stringify,
  read: readChanges,
  readForAll: readChangesForAll,
  findNews: findChanges,
};

interface BatchResult<Result> {
  page: Result;
  /** Hashes of valid tokens, in hex. */
  valid: ReadonlySet<string>;
}

/** The principals that one statement serves. */
interface Batch<Result> {
  principals: Map<string, Principal>;
  size: number;
  isSent: boolean;
  result: Promise<BatchResult<Result>>;
}

/**
 * Reads pages, by one statement for all who ask for the same page at the same moment: the devices of one account are woken
 * together, and then poll again together. Whoever asks while that page is being read is served by the next statement, so
 * that a page is never older than the request for it.
 */
export class PageReader<Start, Result> {
  readonly #database: Database;
  readonly #source: PageSource<Start, Result>;
  readonly #permits: Semaphore<number>;
  readonly #deadlineMs: number;
  readonly #last = new Map<string, Batch<Result>>();
  #checks: (Check<Start> & { news: PromiseWithResolvers<boolean> })[] = [];
  #isChecking = false;

  /**
   * Each statement takes a permit of its user. `deadlineMs` is what the database gives a statement, from its call to its
   * result.
   */
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

  /** The principal's page; throws `INVALID_TOKEN` where the token is no longer valid. */
  async read(principal: Principal, start: Start, limit: number): Promise<Result> {
    const name = `${principal.userId} ${limit} ${this.#source.nameOf(start)}`;
    const last = this.#last.get(name);
    const isOpen = last !== undefined && !last.isSent && last.size < BATCH_SIZE;
    const batch = isOpen ? last : this.#open(name, last, start, limit);
    batch.principals.set(principal.key, principal);
    batch.size += 1;
    const { page, valid } = await batch.result;
    if (!valid.has(principal.hash.toString('hex'))) throw invalidToken();
    return page;
  }

  /**
   * Whether the principal should read the page again: it has something now, or the token is no longer valid. One statement
   * for the polls of all users, for all of them may ask at once.
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
        const found = new Set(await this.#source.findNews(this.#database, checks, this.#deadlineMs));
        for (const [position, { news }] of checks.entries()) news.resolve(found.has(position));
      } catch (error) {
        for (const { news } of checks) news.reject(error);
      }
    }
    this.#isChecking = false;
  }

  #open(name: string, before: Batch<Result> | undefined, start: Start, limit: number): Batch<Result> {
    const batch: Batch<Result> = { principals: new Map(), size: 0, isSent: false, result: undefined! };
    this.#last.set(name, batch);
    batch.result = this.#run(batch, before, start, limit).finally(() => {
      if (this.#last.get(name) === batch) this.#last.delete(name);
    });
    return batch;
  }

  async #run(
    batch: Batch<Result>,
    before: Batch<Result> | undefined,
    start: Start,
    limit: number,
  ): Promise<BatchResult<Result>> {
    // Even with none before it, those who were woken in the same moment join first.
    await (before && endOf(before));
    const deadlineMs = before ? this.#deadlineMs - WAIT_BEHIND_MS : this.#deadlineMs;
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
    const page = await this.#source.read(this.#database, principal!, start, limit, deadlineMs);
    return { page, valid: new Set([principal!.hash.toString('hex')]) };
  }
}

const endOf = ({ result }: Batch<unknown>): Promise<unknown> =>
  Promise.race([result.catch(() => {}), sleep(WAIT_BEHIND_MS, undefined, { ref: false })]);
