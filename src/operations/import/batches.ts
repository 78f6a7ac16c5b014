import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { invalid, limitExceeded } from '../../domain/errors.ts';
import { BOUNDS, type TagNames } from '../../domain/fields.ts';
import type { ImportError } from '../../domain/resources.ts';
import type { ImportBatch, PreparedImport } from '../../store/imports.ts';
import type { ImportBody } from './body.ts';
import { checkEntry } from './entries.ts';

/** How long entries are checked at a time. Then the event loop serves other requests. */
const SLICE_MS = 5;

/**
 * A batch is full at about this many bytes of entries, or characters of errors. A response reads errors one batch at a
 * time.
 */
const ENTRIES_LENGTH = 4_194_304;
const ERRORS_LENGTH = 65_536;

/** After this many characters, rows are encoded to bytes, because many live strings make garbage collection slow. */
const ROWS_LENGTH = 65_536;

/** Stores a full batch. */
export type Stage = (batch: ImportBatch) => Promise<void>;

/**
 * Checks parsed entries and gathers them in batches (decisions 18 to 20). Passes full batches to `stage`. Without
 * `stage`, all entries are in one batch. Throws `LIMIT_EXCEEDED` for more tags than an account may have. Throws
 * `VALIDATION_ERROR` for a `replace` with invalid entries: the message has the first error and the number of invalid
 * entries.
 */
export async function prepareEntries(
  { replace, entries }: ImportBody,
  stage?: Stage,
): Promise<PreparedImport> {
  const tags = new TagPlaces();
  const seen = new Set<string>();
  const errors = { count: 0, first: undefined as ImportError | undefined };
  let batch = new BatchBuilder();
  let batches = 0;
  let skipped = 0;
  let sliceBegan = performance.now();
  for (const [index, raw] of entries.entries()) {
    const entry = checkEntry(index, raw);
    if ('index' in entry) {
      errors.first ??= entry;
      errors.count += 1;
      if (!replace) batch.addError(entry);
    } else if (!replace && seen.has(entry.urlKey)) skipped += 1;
    else if (!replace || errors.count === 0) {
      seen.add(entry.urlKey);
      batch.add(entry.urlKey, tags.placesOf(entry.tags), entry.row);
    }
    if (stage && batch.isFull) {
      await stage(batch.finish());
      batch = new BatchBuilder();
      batches += 1;
    }
    if (performance.now() - sliceBegan < SLICE_MS) continue;
    await yieldToLoop();
    sliceBegan = performance.now();
  }
  if (replace && errors.first) throw refuseReplace(errors.first, errors.count);
  const { names, keys } = tags;
  return { replace, entries: entries.length, batches, batch: batch.finish(), tags: { names, keys }, skipped };
}

function refuseReplace({ index, error }: ImportError, count: number) {
  const entries = count === 1 ? '1 entry is' : `${count} entries are`;
  return invalid(`bookmarks[${index}]: ${error}; ${entries} invalid and nothing was changed`);
}

/** The distinct tags of an import. If spellings differ in case, the first one is kept. */
class TagPlaces {
  readonly names: string[] = [];
  readonly #placeByKey = new Map<string, number>();

  get keys(): string[] {
    return [...this.#placeByKey.keys()];
  }

  /** The positions of these tags, from 1, separated by blanks. */
  placesOf({ names, keys }: TagNames): string {
    return keys.map((key, n) => this.#placeByKey.get(key) ?? this.#add(key, names[n]!)).join(' ');
  }

  #add(key: string, name: string): number {
    if (this.names.length === BOUNDS.tagsPerUser) throw limitExceeded('an account holds no more tags');
    const place = this.names.push(name);
    this.#placeByKey.set(key, place);
    return place;
  }
}

/** Gathers the valid entries of a batch, and the errors of the invalid ones. */
class BatchBuilder {
  readonly #urlKeys: string[] = [];
  readonly #tagSets: string[] = [];
  readonly #bytes: Buffer[] = [];
  readonly #errors: string[] = [];
  #rows = '';
  #bytesLength = 0;
  #errorsLength = 0;

  get isFull(): boolean {
    return this.#bytesLength >= ENTRIES_LENGTH || this.#errorsLength >= ERRORS_LENGTH;
  }

  add(urlKey: string, tagSet: string, row: string): void {
    this.#rows += `${this.#urlKeys.length === 0 ? '[' : ','}${row}`;
    this.#urlKeys.push(urlKey);
    this.#tagSets.push(tagSet);
    if (this.#rows.length >= ROWS_LENGTH) this.#encode();
  }

  addError(error: ImportError): void {
    const text = JSON.stringify(error);
    this.#errors.push(text);
    this.#errorsLength += text.length;
  }

  finish(): ImportBatch {
    this.#rows += this.#urlKeys.length === 0 ? '[]' : ']';
    this.#encode();
    return {
      urlKeys: `{${this.#urlKeys.join(',')}}`,
      tagSets: this.#tagSets.length === 0 ? '{}' : `{"${this.#tagSets.join('","')}"}`,
      entries: Buffer.concat(this.#bytes),
      errors: this.#errors.join(','),
    };
  }

  #encode(): void {
    this.#bytesLength += this.#bytes[this.#bytes.push(Buffer.from(this.#rows)) - 1]!.length;
    this.#rows = '';
  }
}
