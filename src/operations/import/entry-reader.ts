import { OVERSIZED } from './entry-bytes.ts';
import { JsonText } from './json-text.ts';

/** The fields of an entry as they were sent, absent ones undefined. Where no text can be, a value of its kind stands for it. */
export interface RawEntry {
  url: unknown;
  title: unknown;
  comment: unknown;
  tags: unknown;
  created_at: unknown;
  updated_at: unknown;
}

const NO_FIELDS: RawEntry = {
  url: undefined,
  title: undefined,
  comment: undefined,
  tags: undefined,
  created_at: undefined,
  updated_at: undefined,
};

/**
 * Reads entries out of what a `BodyScanner` let through. Only what the fields of a bookmark need is made of it, every
 * entry in one shape: millions of objects of other shapes would cost far more than their bytes.
 */
export class EntryReader {
  readonly #json: JsonText;

  constructor(entries: string) {
    this.#json = new JsonText(entries);
  }

  /** The place in the text up to which it was read. */
  get at(): number {
    return this.#json.at;
  }

  /**
   * The next entry, where it is an object; else what stands for it: `OVERSIZED` for one that was left out; undefined after
   * the last one.
   */
  next(): unknown {
    const json = this.#json;
    while (json.isAt(',')) json.skip();
    if (json.isAtEnd) return undefined;
    if (json.isAt('{')) return this.#readEntry();
    if (!json.isAt(OVERSIZED)) return json.readOther();
    json.skip();
    return OVERSIZED;
  }

  #readEntry(): RawEntry {
    const json = this.#json;
    const entry = { ...NO_FIELDS };
    for (let key = json.openObject(); key !== undefined; key = json.nextKey()) {
      switch (key) {
        case 'url':
        case 'title':
        case 'comment':
        case 'created_at':
        case 'updated_at':
          entry[key] = json.readOther();
          break;
        case 'tags':
          entry.tags = json.isAt('[') ? this.#readTags() : json.readOther();
          break;
        default:
          json.skipValue();
      }
    }
    return entry;
  }

  /** The names of tags, up to the first value that is none: null stands for it, which fails the entry. */
  #readTags(): (string | null)[] {
    const json = this.#json;
    const names: (string | null)[] = [];
    let isWhole = true;
    for (let more = json.openArray(); more; more = json.nextElement()) {
      if (!isWhole) {
        json.skipValue();
        continue;
      }
      const name = json.isAt('{') ? this.#readName() : json.readOther();
      isWhole = typeof name === 'string';
      names.push(isWhole ? (name as string) : null);
    }
    return names;
  }

  /** What a tag that is an object has as its `name`. */
  #readName(): unknown {
    const json = this.#json;
    let name: unknown;
    for (let key = json.openObject(); key !== undefined; key = json.nextKey()) {
      if (key === 'name') name = json.readOther();
      else json.skipValue();
    }
    return name;
  }
}
