const QUOTE = 0x22;
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];
const [COMMA, SPACE] = [0x2c, 0x20];

const EMPTY_OBJECT = Object.freeze({});
const EMPTY_ARRAY = Object.freeze([]);

/** Walks through text that is known to be JSON, or values of JSON one after the other, and makes of it what is asked for. */
export class JsonText {
  readonly #text: string;
  #at = 0;
  /** The first backslash from `#at` on or after; the text's length where there is none. */
  #backslash = -1;

  constructor(text: string) {
    this.#text = text;
    this.#skipSpace();
  }

  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  isAt(character: string): boolean {
    return this.#text.charCodeAt(this.#at) === character.charCodeAt(0);
  }

  /** Steps over one character. */
  skip(): void {
    this.#at += 1;
    this.#skipSpace();
  }

  /** Steps into an object, and over its first key, which it gives; undefined, and past the object, where there is none. */
  openObject(): string | undefined {
    this.skip();
    return this.#readKey();
  }

  /** After a value: steps over the next key, which it gives; undefined, and past the object, where there is none. */
  nextKey(): string | undefined {
    if (this.#text.charCodeAt(this.#at) === COMMA) this.skip();
    return this.#readKey();
  }

  #readKey(): string | undefined {
    if (this.#text.charCodeAt(this.#at) === CLOSE_BRACE) {
      this.skip();
      return undefined;
    }
    const key = this.#readString();
    this.#skipSpace();
    this.skip();
    return key;
  }

  /** Steps into an array; false, and past it, where it is empty. */
  openArray(): boolean {
    this.skip();
    return this.nextElement();
  }

  /** Steps to the next element of an array; false, and past the array, where there is none. */
  nextElement(): boolean {
    const code = this.#text.charCodeAt(this.#at);
    if (code === COMMA || code === CLOSE_BRACKET) this.skip();
    return code !== CLOSE_BRACKET;
  }

  /** Reads a value: a text as it is; an empty object, an empty array, null, true or 0 for any other of its kind. */
  readOther(): unknown {
    const code = this.#text.charCodeAt(this.#at);
    if (code === QUOTE) {
      const text = this.#readString();
      this.#skipSpace();
      return text;
    }
    this.skipValue();
    switch (code) {
      case OPEN_BRACE:
        return EMPTY_OBJECT;
      case OPEN_BRACKET:
        return EMPTY_ARRAY;
      case 0x6e: // n
        return null;
      case 0x74: // t
      case 0x66: // f
        return true;
      default:
        return 0;
    }
  }

  /** Steps over a value, whatever it is. */
  skipValue(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (code === QUOTE) this.#at = this.#findQuote(this.#at + 1) + 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#skipContainer();
    else this.#skipWord();
    this.#skipSpace();
  }

  #skipContainer(): void {
    let depth = 0;
    do {
      const code = this.#text.charCodeAt(this.#at);
      if (code === QUOTE) this.#at = this.#findQuote(this.#at + 1);
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
      else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
      this.#at += 1;
    } while (depth > 0);
  }

  /** A number, or `true`, `false` or `null`. */
  #skipWord(): void {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code <= SPACE || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET) return;
    }
  }

  #skipSpace(): void {
    while (this.#text.charCodeAt(this.#at) <= SPACE) this.#at += 1;
  }

  #readString(): string {
    const start = this.#at + 1;
    const end = this.#findQuote(start);
    this.#at = end + 1;
    const text = this.#text.slice(start, end);
    return text.includes('\\') ? JSON.parse(this.#text.slice(start - 1, end + 1)) : text;
  }

  /** The place of the quote that ends a string. Both kinds of places are found once each, however many escapes there are. */
  #findQuote(start: number): number {
    let at = start;
    let quote = this.#find('"', at);
    for (;;) {
      if (this.#backslash < at) this.#backslash = this.#find('\\', at);
      if (quote < this.#backslash) return quote;
      at = this.#backslash + 2;
      if (quote < at) quote = this.#find('"', at);
      if (at >= this.#text.length) throw new Error('what was to be JSON is none');
    }
  }

  #find(character: string, from: number): number {
    const found = this.#text.indexOf(character, from);
    return found < 0 ? this.#text.length : found;
  }
}
