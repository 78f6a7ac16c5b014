import { limitExceeded } from '../../domain/errors.ts';
import { BOUNDS, type TagNames } from '../../domain/fields.ts';
import { compareByCodePoints } from '../../domain/text.ts';

/** The distinct tags of an import, as Postgres takes them: in step, each by its place, from 1. */
export class ImportTags {
  readonly names: string[] = [];
  readonly #placeByKey = new Map<string, number>();

  get keys(): string[] {
    return [...this.#placeByKey.keys()];
  }

  /** The place of a tag, which keeps the case first given. Throws `LIMIT_EXCEEDED` at more than an account may have. */
  placeOf(key: string, name: string): number {
    const known = this.#placeByKey.get(key);
    if (known !== undefined) return known;
    if (this.names.length === BOUNDS.tagsPerUser) throw limitExceeded('an account holds no more tags');
    this.names.push(name);
    this.#placeByKey.set(key, this.names.length);
    return this.names.length;
  }
}

/** The distinct tag sets of some entries: most entries share theirs. */
export class TagSets {
  readonly #tags: ImportTags;
  readonly #setByRefs = new Map<string, number>();
  /** By the keys in the order given, which comes again. */
  readonly #setByKeys = new Map<string, number>();

  constructor(tags: ImportTags) {
    this.#tags = tags;
  }

  /** The place of a set, from 1; 0 for the empty one. */
  add({ names, keys }: TagNames): number {
    if (keys.length === 0) return 0;
    const joined = keys.join('\0');
    const known = this.#setByKeys.get(joined) ?? this.#find(names, keys);
    this.#setByKeys.set(joined, known);
    return known;
  }

  /** Sets as array literals of the places of their tags, in the order of the folded names. */
  get refs(): string[] {
    return [...this.#setByRefs.keys()];
  }

  #find(names: readonly string[], keys: readonly string[]): number {
    const places = new Map(keys.map((key, n) => [key, this.#tags.placeOf(key, names[n]!)]));
    const sorted = keys.length === 1 ? keys : keys.toSorted(compareByCodePoints);
    const refs = `{${sorted.map((key) => places.get(key)).join(',')}}`;
    const known = this.#setByRefs.get(refs);
    if (known !== undefined) return known;
    this.#setByRefs.set(refs, this.#setByRefs.size + 1);
    return this.#setByRefs.size;
  }
}
