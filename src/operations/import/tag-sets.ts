import type { TagNames } from '../../domain/fields.ts';

/** Distinct tags and distinct sets of them, as Postgres takes them: most entries of an import share their tags. */
export interface TagSetColumns {
  tagNames: string[];
  tagKeys: string[];
  /** A set's places in `tagNames`, from 1, as an array literal, in the order of the folded names. */
  setRefs: string[];
}

/** Collation "C" orders by the bytes of UTF-8, so by code points; JavaScript compares code units. */
const compareByCodePoints = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Gathers the tag sets of entries. */
export class TagSets {
  readonly #placeByKey = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #setByRefs = new Map<string, number>();
  /** By the keys in the order given, which comes again. */
  readonly #setByKeys = new Map<string, number>();

  /** The place of a set, from 1; 0 for the empty one. A tag keeps the case first given. */
  add({ names, keys }: TagNames): number {
    if (keys.length === 0) return 0;
    const joined = keys.join('\0');
    const known = this.#setByKeys.get(joined) ?? this.#find(names, keys);
    this.#setByKeys.set(joined, known);
    return known;
  }

  #find(names: readonly string[], keys: readonly string[]): number {
    for (const [index, key] of keys.entries()) this.#addTag(key, names[index]!);
    const sorted = keys.length === 1 ? keys : keys.toSorted(compareByCodePoints);
    const refs = `{${sorted.map((key) => this.#placeByKey.get(key)).join(',')}}`;
    const known = this.#setByRefs.get(refs);
    if (known !== undefined) return known;
    this.#setByRefs.set(refs, this.#setByRefs.size + 1);
    return this.#setByRefs.size;
  }

  #addTag(key: string, name: string): void {
    if (this.#placeByKey.has(key)) return;
    this.#names.push(name);
    this.#placeByKey.set(key, this.#names.length);
  }

  take(): TagSetColumns {
    return {
      tagNames: this.#names,
      tagKeys: [...this.#placeByKey.keys()],
      setRefs: [...this.#setByRefs.keys()],
    };
  }
}
