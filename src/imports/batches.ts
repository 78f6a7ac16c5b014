import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { invalid, limitExceeded } from '../domain/errors.ts';
import { BOUNDS, type TagNames } from '../domain/fields.ts';
import type { ImportError } from '../domain/resources.ts';
import type { ImportBatch, PreparedImport } from '../store/imports.ts';
import type { ImportBody } from './body.ts';
import { checkEntry } from './entries.ts';

/** For how many milliseconds entries are checked without a break. In a break, the event loop serves other requests. */
const SLICE_MS = 5;

/**
 * A batch is full when its entries have about this many bytes, or its errors this many characters. Entries need a limit
 * because a worker receives and stores a batch without a break. Errors need one because all errors of a batch are read
 * together for a response.
 */
const ENTRIES_LENGTH = 1_048_576;
const ERRORS_LENGTH = 65_536;

/** Once rows have this many characters, they are encoded to bytes. Many strings would slow down garbage collection. */
const ROWS_LENGTH = 65_536;

/** Stores a full batch. */
export type Stage = (batch: ImportBatch) => Promise<void>;

/**
 * Checks parsed entries and gathers them in batches (docs/contract.md, decisions 18 to 20). Passes full batches to
 * `stage`. Without `stage`, all entries are in one batch.
 *
 * Throws `LIMIT_EXCEEDED` for more tags than an account may have. Throws `VALIDATION_ERROR` for a `replace` with
 * invalid entries. The message of this error contains the first invalid entry's error and the number of invalid
 * entries.
 */
export async function prepareEntries(
  { replace, entries }: ImportBody,
  stage?: Stage,
): Promise<PreparedImport> {
  const tags = new TagPositions();
  const seenUrls = new Set<string>();
  const errors = { count: 0, first: undefined as ImportError | undefined };
  let batch = new BatchBuilder();
  let stagedBatches = 0;
  let skipped = 0;
  let sliceBegan = performance.now();
  for (const [index, raw] of entries.entries()) {
    const entry = checkEntry(index, raw);
    // Only an error has an index.
    if ('index' in entry) {
      errors.first ??= entry;
      errors.count += 1;
      if (!replace) batch.addError(entry);
    } else if (!replace && seenUrls.has(entry.urlKey)) skipped += 1;
    // A `replace` with an invalid entry fails, so valid entries after it need not be kept.
    else if (!replace || errors.count === 0) {
      seenUrls.add(entry.urlKey);
      batch.add(entry.urlKey, tags.positionsOf(entry.tags), entry.row);
    }
    if (stage && batch.isFull) {
      await stage(batch.finish());
      batch = new BatchBuilder();
      stagedBatches += 1;
    }
    if (performance.now() - sliceBegan < SLICE_MS) continue;
    await yieldToLoop();
    sliceBegan = performance.now();
  }
  if (replace && errors.first) throw refuseReplace(errors.first, errors.count);
  const { names, keys } = tags;
  return {
    replace,
    entries: entries.length,
    batches: stagedBatches,
    batch: batch.finish(),
    tags: { names, keys },
    skipped,
  };
}

/** Returns the error for a `replace` with invalid entries. */
function refuseReplace({ index, error }: ImportError, count: number) {
  const entries = count === 1 ? '1 entry is' : `${count} entries are`;
  return invalid(`bookmarks[${index}]: ${error}; ${entries} invalid and nothing was changed`);
}

/** The distinct tags of an import. If the spellings of a tag differ in case, the first spelling is kept. */
class TagPositions {
  readonly names: string[] = [];
  readonly #positionByKey = new Map<string, number>();

  get keys(): string[] {
    return [...this.#positionByKey.keys()];
  }

  /**
   * Returns the positions of these tags in `names`, counted from 1 and separated by spaces. Adds new tags to `names`.
   */
  positionsOf({ names, keys }: TagNames): string {
    return keys.map((key, n) => this.#positionByKey.get(key) ?? this.#add(key, names[n]!)).join(' ');
  }

  #add(key: string, name: string): number {
    if (this.names.length === BOUNDS.tagsPerUser) throw limitExceeded('an account holds no more tags');
    const position = this.names.push(name);
    this.#positionByKey.set(key, position);
    return position;
  }
}

/** Gathers the valid entries of a batch, and the errors of the invalid ones. */
class BatchBuilder {
  readonly #urlKeys: string[] = [];
  /** For each entry, what `TagPositions.positionsOf` returned for its tags. */
  readonly #tagSets: string[] = [];
  /** The encoded part of the JSON array of rows. `#rows` is the part that is not encoded yet. */
  readonly #bytes: Buffer[] = [];
  readonly #errors: string[] = [];
  #rows = '';
  #entriesLength = 0;
  #errorsLength = 0;

  get isFull(): boolean {
    return this.#entriesLength >= ENTRIES_LENGTH || this.#errorsLength >= ERRORS_LENGTH;
  }

  add(urlKey: string, tagSet: string, row: string): void {
    this.#rows += `${this.#urlKeys.length === 0 ? '[' : ','}${row}`;
    this.#urlKeys.push(urlKey);
    this.#tagSets.push(tagSet);
    this.#entriesLength += urlKey.length + tagSet.length;
    if (this.#rows.length >= ROWS_LENGTH) this.#encode();
  }

  addError(error: ImportError): void {
    const text = JSON.stringify(error);
    this.#errors.push(text);
    this.#errorsLength += text.length;
  }

  /** Returns the batch. Nothing may be added afterwards. */
  finish(): ImportBatch {
    this.#rows += this.#urlKeys.length === 0 ? '[]' : ']';
    this.#encode();
    return {
      urlKeys: `{${this.#urlKeys.join(',')}}`,
      tagSets: this.#tagSets.length === 0 ? '{}' : `{"${this.#tagSets.join('","')}"}`,
      entries: Buffer.concat(this.#bytes),
      errors: Buffer.from(this.#errors.join(',')),
    };
  }

  #encode(): void {
    const bytes = Buffer.from(this.#rows);
    this.#bytes.push(bytes);
    this.#entriesLength += bytes.length;
    this.#rows = '';
  }
}
