import type { Hash } from 'node:crypto';
import { invalid, invalidToken, unavailable } from '../../domain/errors.ts';
import type { Principal } from '../../domain/tokens.ts';
import { DatabaseUnavailable } from '../../store/errors.ts';
import {
  beginImport,
  cancelImport,
  newImport,
  type StagedImport,
  stageChunk,
} from '../../store/staged-imports.ts';
import { freeBytes } from './body.ts';
import type { ImportContext } from './context.ts';

/** The largest body of an import (decision 2). */
export const IMPORT_BODY_BYTES = 67_108_864;

/**
 * The received bytes are staged as a chunk once there are more than this. Longer chunks would leave more unused memory
 * behind.
 */
const CHUNK_BYTES = 49_152;

/**
 * After this time, the received bytes are staged even if there are fewer. The sweep deletes uploads that staged nothing
 * for a minute, and must not delete a slow upload.
 */
const STAGE_INTERVAL_MS = 10_000;

/** The body of a small import, or a large import whose body is in Postgres. */
export type ReceivedImport = Buffer | StagedImport;

/**
 * A source of a body. `next` returns the next bytes, or undefined at the end. It throws `VALIDATION_ERROR` if the body
 * was aborted.
 */
export interface ImportBody {
  next(): Promise<Buffer | undefined>;
}

/** What the request says about its body. */
interface BodyFacts {
  announcedBytes: number | undefined;
  /** The hash is updated with each part of the body. */
  requestHash: Hash | undefined;
}

const tooLarge = () => invalid(`body: at most ${IMPORT_BODY_BYTES} bytes`);

/**
 * Receives the body of an import without parsing it. A body longer than `importInlineBytes` goes to Postgres in chunks.
 * The client is read only as fast as Postgres stores them, so the memory stays small. An aborted upload is dropped and
 * never queued.
 */
export async function receiveImport(
  context: ImportContext,
  principal: Principal,
  body: ImportBody,
  facts: BodyFacts,
): Promise<ReceivedImport> {
  if (facts.announcedBytes !== undefined && facts.announcedBytes > IMPORT_BODY_BYTES) throw tooLarge();
  const upload = new Upload(context, principal, facts);
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

/** A body that is being received. It is in memory at first, and staged once it is longer than `importInlineBytes`. */
class Upload {
  readonly #context: ImportContext;
  readonly #principal: Principal;
  readonly #facts: BodyFacts;
  #parts: Buffer[] = [];
  #gathered = 0;
  #bytes = 0;
  #staged: StagedImport | undefined;
  #chunks = 0;
  #stagedAt = 0;
  /** The chunk that is being staged while the next bytes arrive. */
  #staging: Promise<void> = Promise.resolve();

  constructor(context: ImportContext, principal: Principal, facts: BodyFacts) {
    this.#context = context;
    this.#principal = principal;
    this.#facts = facts;
  }

  async take(part: Buffer): Promise<void> {
    this.#bytes += part.length;
    if (this.#bytes > IMPORT_BODY_BYTES) throw tooLarge();
    this.#parts.push(part);
    this.#gathered += part.length;
    if (this.#bytes <= this.#context.config.importInlineBytes) return;
    if (this.#staged === undefined) await this.#begin();
    if (this.#gathered > CHUNK_BYTES || this.#now() - this.#stagedAt >= STAGE_INTERVAL_MS)
      await this.#stageChunk();
  }

  async end(): Promise<ReceivedImport> {
    if (this.#staged === undefined) return this.#take();
    if (this.#gathered > 0) await this.#stageChunk();
    await this.#staging;
    return this.#staged;
  }

  /** Best effort: if this fails, the sweep deletes the upload later. It was never queued, so it never runs. */
  async drop(): Promise<void> {
    await this.#staging.catch(() => {});
    if (this.#staged !== undefined) await cancelImport(this.#context.database, this.#staged).catch(() => {});
  }

  #now(): number {
    return this.#context.coordination.clock.now();
  }

  async #begin(): Promise<void> {
    const { database, config } = this.#context;
    const staged = newImport(this.#principal.userId);
    const bytes = this.#facts.announcedBytes ?? IMPORT_BODY_BYTES;
    try {
      await beginImport(database, this.#principal, staged.id, bytes, config.importStagedBytes);
    } catch (error) {
      // The lost statement may have begun the import, which would then take the user's only place. With `#staged` set,
      // `drop` cancels it.
      if (error instanceof DatabaseUnavailable && error.mayHaveRun) this.#staged = staged;
      throw error;
    }
    this.#staged = staged;
    this.#stagedAt = this.#now();
  }

  async #stageChunk(): Promise<void> {
    await this.#staging;
    const bytes = this.#take();
    const position = this.#chunks;
    this.#chunks += 1;
    this.#stagedAt = this.#now();
    this.#staging = this.#store(position, bytes);
    // `#staging` is awaited later. Until then, nothing else handles its rejection.
    this.#staging.catch(() => {});
  }

  #take(): Buffer {
    const parts = this.#parts;
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    this.#parts = [];
    this.#gathered = 0;
    return bytes;
  }

  async #store(position: number, bytes: Buffer): Promise<void> {
    if (!(await stageChunk(this.#context.database, this.#staged!, position, bytes)))
      throw await this.#explainEnd();
    freeBytes(bytes);
  }

  /** Why the import stopped receiving: it was cancelled, or its account was deleted with it. */
  async #explainEnd(): Promise<Error> {
    const state = await cancelImport(this.#context.database, this.#staged!);
    return state === undefined ? invalidToken() : unavailable('the import was cancelled');
  }
}

/**
 * Reads the rest of the body, up to the longest valid body. Many clients read the response only after they have sent
 * everything. If the service closed the connection earlier, they would see a reset instead.
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
