import type { Hash } from 'node:crypto';
import { invalid, invalidToken, unavailable } from '../../domain/errors.ts';
import type { Caller } from '../../domain/tokens.ts';
import { DatabaseUnavailable } from '../../store/errors.ts';
import {
  beginImport,
  cancelImport,
  type StagedImport,
  stageChunk,
  touchImport,
} from '../../store/staged-imports.ts';
import { BodyScanner } from './body-scanner.ts';
import type { ImportContext } from './context.ts';
import { newImport } from './job.ts';

/** The largest body of an import (decision 2). */
export const IMPORT_BODY_BYTES = 67_108_864;

/** Entries are staged once they are longer, in chunks of this size. Shorter chunks leave less dead memory behind. */
const CHUNK_BYTES = 49_152;

const TOUCH_INTERVAL_MS = 10_000;

/** The entries of a small import, as they were sent. */
export interface ReceivedEntries {
  replace: boolean;
  entries: string;
}

/** A large import, whose entries lie in Postgres. */
export interface ReceivedStaged {
  staged: StagedImport;
  replace: boolean;
  /** The position of its first chunk: those before are void. */
  firstChunk: number;
}

export type ReceivedImport = ReceivedEntries | ReceivedStaged;

/** Where the bytes of a body come from: the next ones, undefined at the end; throws `VALIDATION_ERROR` where it broke off. */
export interface ImportBody {
  next(): Promise<Buffer | undefined>;
}

/** What came with a body. */
export interface BodyFacts {
  announcedBytes: number | undefined;
  idempotencyKey: string | undefined;
  /** Takes the bytes as they come. */
  requestHash: Hash | undefined;
}

const tooLarge = () => invalid(`body: at most ${IMPORT_BODY_BYTES} bytes`);

/**
 * Reads the body of an import, and finds its faults as it comes, those of its entries apart; throws `VALIDATION_ERROR`. The
 * entries of a body longer than `importInlineBytes` go to Postgres chunk by chunk, as fast as Postgres takes them, so that
 * memory stays flat; an upload that breaks off is dropped and never queued.
 */
export async function receiveImport(
  context: ImportContext,
  caller: Caller,
  body: ImportBody,
  facts: BodyFacts,
): Promise<ReceivedImport> {
  if (facts.announcedBytes !== undefined && facts.announcedBytes > IMPORT_BODY_BYTES) throw tooLarge();
  const upload = new Upload(context, caller, facts);
  try {
    for (;;) {
      const part = await body.next();
      if (part === undefined) return await upload.end();
      facts.requestHash?.update(part);
      await upload.take(part);
    }
  } catch (error) {
    await upload.drop();
    await discard(body);
    throw error;
  }
}

/** A body on its way: small and at hand, or staged once it is longer. */
class Upload {
  readonly #context: ImportContext;
  readonly #caller: Caller;
  readonly #facts: BodyFacts;
  readonly #scanner = new BodyScanner();
  #bytes = 0;
  #staged: StagedImport | undefined;
  #chunks = 0;
  #firstChunk = 0;
  #restarts = 0;
  #touchedAt = 0;
  /** What is being staged while the next bytes arrive. */
  #staging: Promise<void> = Promise.resolve();

  constructor(context: ImportContext, caller: Caller, facts: BodyFacts) {
    this.#context = context;
    this.#caller = caller;
    this.#facts = facts;
  }

  async take(part: Buffer): Promise<void> {
    this.#bytes += part.length;
    if (this.#bytes > IMPORT_BODY_BYTES) throw tooLarge();
    this.#scanner.push(part);
    if (this.#bytes <= this.#context.config.importInlineBytes) return;
    if (this.#staged === undefined) await this.#begin();
    if (this.#scanner.takeable > CHUNK_BYTES) await this.#stageChunk();
    else await this.#touch();
  }

  async end(): Promise<ReceivedImport> {
    const { replace } = this.#scanner.end();
    if (this.#staged === undefined) return { replace, entries: this.#scanner.take().toString() };
    if (this.#scanner.takeable > 0) await this.#stageChunk();
    await this.#staging;
    this.#noteRestarts();
    return { staged: this.#staged, replace, firstChunk: this.#firstChunk };
  }

  /** Best effort: what stays behind was never queued, never runs, and is swept by its age. */
  async drop(): Promise<void> {
    await this.#staging.catch(() => {});
    if (this.#staged !== undefined) await cancelImport(this.#context.database, this.#staged).catch(() => {});
  }

  async #begin(): Promise<void> {
    const { database, config } = this.#context;
    const staged = newImport(this.#caller.userId);
    const { announcedBytes, idempotencyKey } = this.#facts;
    const claimed = { bytes: announcedBytes ?? IMPORT_BODY_BYTES, stagedLimit: config.importStagedBytes };
    try {
      await beginImport(database, this.#caller, staged.id, { ...claimed, idempotencyKey });
    } catch (error) {
      // It would hold the user's one place until it is swept.
      if (error instanceof DatabaseUnavailable && error.mayHaveRun) this.#staged = staged;
      throw error;
    }
    this.#staged = staged;
    this.#touchedAt = performance.now();
  }

  async #stageChunk(): Promise<void> {
    await this.#staging;
    this.#noteRestarts();
    const entries = this.#scanner.take();
    const position = this.#chunks;
    this.#chunks += 1;
    const isStaged = stageChunk(this.#context.database, this.#staged!, position, entries.toString());
    this.#staging = this.#require(isStaged);
    // It is awaited later, and may fail before.
    this.#staging.catch(() => {});
  }

  /** An array that began anew makes void what was staged of the one before. */
  #noteRestarts(): void {
    if (this.#scanner.restarts === this.#restarts) return;
    this.#restarts = this.#scanner.restarts;
    this.#firstChunk = this.#chunks;
  }

  /** While bytes come that are no entries: what nobody feeds for a minute is swept. */
  async #touch(): Promise<void> {
    if (performance.now() - this.#touchedAt < TOUCH_INTERVAL_MS) return;
    await this.#require(touchImport(this.#context.database, this.#staged!));
  }

  async #require(isReceiving: Promise<boolean>): Promise<void> {
    if (!(await isReceiving)) throw await this.#explainEnd();
    this.#touchedAt = performance.now();
  }

  /** The import was cancelled, or its account deleted, which leaves nothing to cancel. */
  async #explainEnd(): Promise<Error> {
    const state = await cancelImport(this.#context.database, this.#staged!);
    return state === undefined ? invalidToken() : unavailable('the import was cancelled');
  }
}

/**
 * Reads on to the body's end, at most as much as a body may have: many clients read the response only when they have
 * sent everything, and would find their connection reset instead.
 */
async function discard(body: ImportBody): Promise<void> {
  try {
    for (let left = IMPORT_BODY_BYTES; left > 0; ) {
      const part = await body.next();
      if (part === undefined) return;
      left -= part.length;
    }
  } catch {
    // The client has gone.
  }
}
