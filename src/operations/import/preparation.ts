import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { invalid } from '../../domain/errors.ts';
import type { ImportError } from '../../domain/resources.ts';
import { ImportChanged, type ImportPiece, type KnownUrls, type PreparedImport } from '../../store/imports.ts';
import { type CheckedEntry, checkEntry } from './entries.ts';
import { PieceBuilder } from './piece.ts';
import { ImportTags } from './tag-sets.ts';

/** For so long entries are read and checked without a pause; then other requests come in between. */
const SLICE_MS = 5;

/** So many tags are sorted without a pause: sets of a hundred take a tenth of a millisecond each. */
const SLICE_TAGS = 10_000;

/** Entries are passed on in batches of about this many bytes, or of this many entries. */
const BATCH_BYTES = 1_048_576;
const BATCH_ENTRIES = 5_000;

/** Below this a look for urls that the user has costs more than it spares. */
const LOOK_AHEAD_ENTRIES = 200;

/**
 * A staged import keeps at most so many bytes in memory for the statement that writes it; earlier ones are stored, a piece at
 * a time. A piece is built and sent without a pause: at twice this size, in a script of two bytes a character, that took 129 ms
 * of CPU time.
 */
const PIECE_BYTES = 4_194_304;

/** Errors beyond so many characters are stored too, a part at a time. */
const ERRORS_LENGTH = 65_536;

/** Where what a large import has too much of is put by, until the statement that writes it. */
export interface Stage {
  putPiece(position: number, piece: ImportPiece): Promise<void>;
  /** Errors as JSON, with commas between. */
  putErrors(position: number, errors: string): Promise<void>;
}

/** How an import is prepared. */
export interface PreparationOptions {
  replace: boolean;
  /** Those of some urls that the user has already, by their keys. Absent: nobody looks ahead. */
  findKnown?: ((urlKeys: readonly string[]) => Promise<KnownUrls>) | undefined;
  /** Absent for a small import, which is held whole. */
  stage?: Stage;
}

/** Turns parsed entries into what is written of them (decisions 18 to 20), batch by batch. */
export class Preparation {
  readonly #options: PreparationOptions;
  readonly #tags = new ImportTags();
  readonly #urlKeys = new Set<string>();
  /** The account's version at each look-up of known urls; where there are several, it changed in between. */
  readonly #versions = new Set<string | null>();
  /** When the last pause for others ended: a turn of the event loop may bring many calls of `add`, each of them short. */
  #sliceBegan = performance.now();
  #entries = 0;
  #skipped = 0;
  #batch: CheckedEntry[] = [];
  #batchBytes = 0;
  /** Settles when the batch before is in its piece; this one is gathered meanwhile. */
  #going: Promise<void> = Promise.resolve();
  #piece = new PieceBuilder(this.#tags);
  #pieceBytes = 0;
  #pieces = 0;
  #errors: string[] = [];
  #errorsLength = 0;
  #errorParts = 0;
  #firstError: ImportError | undefined;
  #errorCount = 0;

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  /** Takes parsed entries. Throws `LIMIT_EXCEEDED` at more tags than an account may have. */
  async add(entries: readonly unknown[]): Promise<void> {
    for (const raw of entries) {
      this.#take(raw);
      if (this.#batchBytes >= BATCH_BYTES || this.#batch.length >= BATCH_ENTRIES) await this.#passBatch();
      if (performance.now() - this.#sliceBegan > SLICE_MS) {
        await yieldToLoop();
        this.#sliceBegan = performance.now();
        await this.#putErrors();
      }
    }
    await this.#putErrors();
  }

  /** Nothing more comes. Throws `VALIDATION_ERROR` for a `replace` with an invalid entry: the first, and how many there are. */
  async end(): Promise<PreparedImport> {
    await this.#passBatch();
    await this.#going;
    if (this.#options.replace && this.#firstError !== undefined) throw this.#refuseReplace();
    return {
      replace: this.#options.replace,
      entries: this.#entries,
      pieces: this.#pieces,
      piece: this.#piece.piece,
      knownAt: this.#versions.size === 1 ? [...this.#versions][0]! : null,
      tagNames: this.#tags.names,
      tagKeys: this.#tags.keys,
      skipped: this.#skipped,
      errors: this.#errors.join(','),
    };
  }

  #take(raw: unknown): void {
    const index = this.#entries;
    this.#entries += 1;
    const checked = checkEntry(index, raw);
    if ('index' in checked) {
      this.#noteError(checked);
      return;
    }
    if (this.#options.replace) {
      if (this.#firstError !== undefined) return;
    } else if (this.#urlKeys.has(checked.urlKey)) {
      this.#skipped += 1;
      return;
    } else this.#urlKeys.add(checked.urlKey);
    this.#batch.push(checked);
    this.#batchBytes += lengthOf(checked.texts);
  }

  #noteError(error: ImportError): void {
    this.#firstError ??= error;
    this.#errorCount += 1;
    if (this.#options.replace) return;
    const text = JSON.stringify(error);
    this.#errors.push(text);
    this.#errorsLength += text.length;
  }

  #refuseReplace() {
    const { index, error } = this.#firstError!;
    const count = this.#errorCount === 1 ? '1 entry is' : `${this.#errorCount} entries are`;
    return invalid(`bookmarks[${index}]: ${error}; ${count} invalid and nothing was changed`);
  }

  async #putErrors(): Promise<void> {
    const { stage } = this.#options;
    if (stage === undefined || this.#errorsLength < ERRORS_LENGTH) return;
    const errors = this.#errors.join(',');
    this.#errors = [];
    this.#errorsLength = 0;
    this.#errorParts += 1;
    await stage.putErrors(this.#errorParts, errors);
  }

  /** Passes the batch on once the one before has gone on: the next entries are read while Postgres works. */
  async #passBatch(): Promise<void> {
    await this.#going;
    const batch = this.#batch;
    const bytes = this.#batchBytes;
    this.#batch = [];
    this.#batchBytes = 0;
    this.#going = this.#write(batch, bytes);
    // It is awaited later, and may fail before.
    this.#going.catch(() => {});
  }

  async #write(batch: readonly CheckedEntry[], bytes: number): Promise<void> {
    const known = await this.#findKnown(batch);
    let tags = 0;
    for (const entry of batch) {
      tags += entry.tags.keys.length;
      if (tags > SLICE_TAGS) {
        await yieldToLoop();
        tags = 0;
      }
      if (known?.has(entry.urlKey)) this.#piece.addKnown(entry);
      else this.#piece.add(entry);
    }
    this.#pieceBytes += bytes;
    if (this.#pieceBytes < PIECE_BYTES || this.#options.stage === undefined) return;
    const { piece } = this.#piece;
    this.#piece = new PieceBuilder(this.#tags);
    this.#pieceBytes = 0;
    await this.#options.stage.putPiece(this.#pieces, piece);
    this.#pieces += 1;
  }

  async #findKnown(batch: readonly CheckedEntry[]): Promise<ReadonlySet<string> | undefined> {
    const { replace, findKnown } = this.#options;
    if (replace || findKnown === undefined || batch.length < LOOK_AHEAD_ENTRIES) return undefined;
    const { keys, version } = await findKnown(batch.map(({ urlKey }) => urlKey));
    this.#versions.add(version);
    return keys;
  }
}

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

/** Does the work; does it again, without looking for known urls, where those were changed before the work was done. */
export async function tryAgainWhereChanged<Result>(
  work: (looksAhead: boolean) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(true);
  } catch (error) {
    if (!(error instanceof ImportChanged)) throw error;
  }
  return work(false);
}
