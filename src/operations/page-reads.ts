import { setTimeout as sleep } from 'node:timers/promises';
import { invalidToken } from '../domain/errors.ts';
import type { Caller } from '../domain/tokens.ts';
import { type Page, readPage, readPageForAll } from '../store/bookmarks.ts';
import type { Database } from '../store/database.ts';

/** A look waits for one before it at most so long, and then has so much less time than another. */
const BEHIND_MS = 500;

/** Answers are written in one go, while nobody else is served: those of many polls go in parts. */
const TOGETHER = 250;

interface BatchResult {
  page: Page;
  /** Hashes of valid tokens, in hex. */
  valid: ReadonlySet<string>;
}

/** Those who are answered by one statement. */
interface Batch {
  callers: Map<string, Caller>;
  size: number;
  isSent: boolean;
  answer: Promise<BatchResult>;
}

/**
 * PageReader for what is new, one statement for all who ask for the same page at the same moment: the devices of one account
 * are woken together, and then poll again together. Whoever asks while that page is being read is answered by the next
 * statement, so an answer never is older than its question.
 */
export class PageReader {
  readonly #database: Database;
  readonly #deadlineMs: number;
  readonly #last = new Map<string, Batch>();

  /** `deadlineMs` is what the database gives a statement, from its call to its answer. */
  constructor(database: Database, deadlineMs: number) {
    this.#database = database;
    this.#deadlineMs = deadlineMs;
  }

  /** The caller's bookmarks after an id, rising (spec 4.2); throws `INVALID_TOKEN` where the token is no longer valid. */
  async read(caller: Caller, afterId: number, limit: number): Promise<Page> {
    const name = `${caller.userId} ${afterId} ${limit}`;
    const last = this.#last.get(name);
    const isOpen = last !== undefined && !last.isSent && last.size < TOGETHER;
    const batch = isOpen ? last : this.#open(name, last, afterId, limit);
    batch.callers.set(caller.key, caller);
    batch.size += 1;
    const { page, valid } = await batch.answer;
    if (!valid.has(caller.hash.toString('hex'))) throw invalidToken();
    return page;
  }

  #open(name: string, before: Batch | undefined, afterId: number, limit: number): Batch {
    const batch: Batch = { callers: new Map(), size: 0, isSent: false, answer: undefined! };
    this.#last.set(name, batch);
    batch.answer = this.#run(batch, before, afterId, limit).finally(() => {
      if (this.#last.get(name) === batch) this.#last.delete(name);
    });
    return batch;
  }

  async #run(batch: Batch, before: Batch | undefined, afterId: number, limit: number): Promise<BatchResult> {
    // Even with none before it, those who were woken in the same moment join first.
    await (before && endOf(before));
    batch.isSent = true;
    const callers = [...batch.callers.values()];
    const [caller] = callers;
    const deadlineMs = before ? this.#deadlineMs - BEHIND_MS : this.#deadlineMs;
    if (callers.length > 1) {
      const { valid, ...page } = await readPageForAll(this.#database, callers, afterId, limit, deadlineMs);
      return { page, valid: new Set(valid) };
    }
    const page = await readPage(this.#database, caller!, afterId, limit, deadlineMs);
    return { page, valid: new Set([caller!.hash.toString('hex')]) };
  }
}

const endOf = ({ answer }: Batch): Promise<unknown> =>
  Promise.race([answer.catch(() => {}), sleep(BEHIND_MS, undefined, { ref: false })]);
