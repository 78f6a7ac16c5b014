import type { ImportPiece } from '../../store/imports.ts';
import { joinColumns, plainArray } from '../../store/joined-texts.ts';
import { type CheckedEntry, COLUMN_NAMES } from './entries.ts';
import { type ImportTags, TagSets } from './tag-sets.ts';

/** Gathers entries, in columns that are in step, as one statement takes them. */
export class PieceBuilder {
  readonly #sets: TagSets;
  readonly #columns: string[][] = COLUMN_NAMES.map(() => []);
  readonly #urlKeys: string[] = [];
  readonly #tagSets: number[] = [];
  readonly #knownKeys: string[] = [];

  constructor(tags: ImportTags) {
    this.#sets = new TagSets(tags);
  }

  /** Throws `LIMIT_EXCEEDED` where the tags of the import are too many. */
  add({ urlKey, texts, tags }: CheckedEntry): void {
    this.#tagSets.push(this.#sets.add(tags));
    this.#urlKeys.push(urlKey);
    for (const [n, column] of this.#columns.entries()) column.push(texts[n]!);
  }

  /** Of an entry whose url the user has nothing else is needed. */
  addKnown({ urlKey }: CheckedEntry): void {
    this.#knownKeys.push(urlKey);
  }

  get piece(): ImportPiece {
    return {
      names: [...COLUMN_NAMES],
      ...joinColumns(this.#columns),
      urlKeys: plainArray(this.#urlKeys),
      tagSets: plainArray(this.#tagSets),
      setRefs: this.#sets.refs.join(';'),
      knownKeys: plainArray(this.#knownKeys),
    };
  }
}
