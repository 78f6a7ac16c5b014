import type { Hash } from 'node:crypto';
import { BOUNDS } from '../domain/bounds.ts';
import { invalid, invalidToken, unavailable } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { DatabaseUnavailable } from '../store/driver/errors.ts';
import { beginImport, cancelImport, type ImportKey, newImport, stageChunk } from '../store/staged-imports.ts';
import { freeBytes } from './body.ts';
import type { ImportContext } from './context.ts';

/**
 * As soon as more bytes than this have been received, they are stored in Postgres as a chunk. With longer chunks, the
 * process would keep more memory that it no longer uses.
 */
const CHUNK_BYTES = 49_152;

/**
 * After this time, the received bytes are stored even if there are fewer than `CHUNK_BYTES`. A sweep deletes uploads
 * that have stored nothing for a minute, so a slow upload must store its bytes more often than that.
 */
const STAGE_INTERVAL_MS = 10_000;

/** What was received: the body itself if it is small, or else the staged import whose body is in Postgres. */
export type ReceivedImport = Buffer | ImportKey;

/**
 * A body that is being received. `next` returns the next bytes, or undefined at the end. It throws `VALIDATION_ERROR`
 * if the client disconnects before the end.
 */
export interface ImportBody {
  next(): Promise<Buffer | undefined>;
}

/** What is known about the body before it is received. */
interface BodyFacts {
  /** The length in the `Content-Length` header; undefined without this header. */
  announcedBytes: number | undefined;
  /** If present, all bytes of the body are added to this hash. */
  requestHash: Hash | undefined;
}

const tooLarge = () => invalid(`body: at most ${BOUNDS.importBytes} bytes`);

/**
 * Receives the body of an import without parsing it. A body longer than `importInlineBytes` goes to Postgres in chunks.
 * The body is read only as fast as Postgres stores the chunks, so little of it is in memory. An aborted upload is
 * cancelled, and its import never runs.
 */
export async function receiveImport(
  context: ImportContext,
  principal: Principal,
  body: ImportBody,
  facts: BodyFacts,
): Promise<ReceivedImport> {
  if (facts.announcedBytes !== undefined && facts.announcedBytes > BOUNDS.importBytes) throw tooLarge();
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

/** The received bytes of a body. They stay in memory until there are more than `importInlineBytes`. */
class Upload {
  readonly #context: ImportContext;
  readonly #principal: Principal;
  readonly #facts: BodyFacts;
  /** The bytes that are not in a chunk yet, and their number. */
  #parts: Buffer[] = [];
  #gatheredBytes = 0;
  /** The number of all bytes of the body so far. */
  #bytes = 0;
  /** The import in Postgres. Undefined while the whole body is in memory. */
  #staged: ImportKey | undefined;
  /** The number of chunks so far. It is the position of the next chunk. */
  #chunks = 0;
  /** When the latest chunk was given to Postgres, or when the import began if there is no chunk yet. */
  #stagedAt = 0;
  /** Settles when Postgres has stored the latest chunk. Meanwhile, the next bytes arrive. */
  #staging: Promise<void> = Promise.resolve();

  constructor(context: ImportContext, principal: Principal, facts: BodyFacts) {
    this.#context = context;
    this.#principal = principal;
    this.#facts = facts;
  }

  async take(part: Buffer): Promise<void> {
    this.#bytes += part.length;
    if (this.#bytes > BOUNDS.importBytes) throw tooLarge();
    this.#parts.push(part);
    this.#gatheredBytes += part.length;
    if (this.#bytes <= this.#context.config.importInlineBytes) return;
    if (this.#staged === undefined) await this.#begin();
    if (this.#gatheredBytes > CHUNK_BYTES || this.#now() - this.#stagedAt >= STAGE_INTERVAL_MS)
      await this.#stageChunk();
  }

  async end(): Promise<ReceivedImport> {
    if (this.#staged === undefined) return this.#takeGathered();
    if (this.#gatheredBytes > 0) await this.#stageChunk();
    await this.#staging;
    return this.#staged;
  }

  /**
   * Deletes the stored upload. If this fails, a sweep deletes the upload later. The import was never queued, so it
   * never runs.
   */
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
    const bytes = this.#facts.announcedBytes ?? BOUNDS.importBytes;
    try {
      await beginImport(database, this.#principal, staged.id, bytes, config.importStagedBytes);
    } catch (error) {
      // Perhaps Postgres began the import, and only the response to the statement was lost. Such an import would block
      // the user's next import, so `#staged` is set, and `drop` cancels the import.
      if (error instanceof DatabaseUnavailable && error.mayHaveRun) this.#staged = staged;
      throw error;
    }
    this.#staged = staged;
    this.#stagedAt = this.#now();
  }

  async #stageChunk(): Promise<void> {
    await this.#staging;
    const bytes = this.#takeGathered();
    const position = this.#chunks;
    this.#chunks += 1;
    this.#stagedAt = this.#now();
    this.#staging = this.#store(position, bytes);
    // `#staging` is awaited later. Until then, nothing else handles its rejection.
    this.#staging.catch(() => {});
  }

  #takeGathered(): Buffer {
    const parts = this.#parts;
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    this.#parts = [];
    this.#gatheredBytes = 0;
    return bytes;
  }

  async #store(position: number, bytes: Buffer): Promise<void> {
    if (!(await stageChunk(this.#context.database, this.#staged!, position, bytes)))
      throw await this.#explainEnd();
    freeBytes(bytes);
  }

  /** Returns the error for an import that takes no more chunks because it was cancelled or its account was deleted. */
  async #explainEnd(): Promise<Error> {
    const state = await cancelImport(this.#context.database, this.#staged!);
    return state === undefined ? invalidToken() : unavailable('the import was cancelled');
  }
}

/**
 * Reads the rest of the body and ignores it, up to the maximum length of a body. Many clients read the response only
 * after they have sent everything. If the service closed the connection earlier, they would get no response.
 */
async function discard(body: ImportBody): Promise<void> {
  try {
    for (let remainingBytes = BOUNDS.importBytes; remainingBytes > 0; ) {
      const part = await body.next();
      if (part === undefined) return;
      remainingBytes -= part.length;
    }
  } catch {
    // The client has disconnected.
  }
}
