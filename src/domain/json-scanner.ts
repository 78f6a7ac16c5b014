import { invalid } from './errors.ts';
import { NumberScanner } from './number-scanner.ts';

/** JSON as it arrives (RFC 8259), byte by byte: what `JSON.parse` would refuse is refused where it stands. */

/** Hears of the outermost three levels of a body. `at` is a place in the part that is being scanned. */
export interface JsonListener {
  /** A key of the outermost object; undefined for one so long that no field has it. */
  onKey(name: string | undefined): void;
  /** A value begins, with this byte. Depth 0: the body itself, 1: a value of the outermost object, 2: a value in that. */
  onBegin(depth: number, byte: number, at: number): void;
  /** The value ended before this place. */
  onEnd(depth: number, at: number): void;
}

/** Levels that the listener hears of. */
const HEARD_DEPTH = 2;

/** One byte each is kept. As many levels as a body could have before, whose objects and arrays were counted. */
const MAX_DEPTH = 3_500_000;

/** `constructor`, each character escaped: the longest spelling of a key that means something. */
const LONGEST_KEY_BYTES = 66;

export const [QUOTE, OPEN_BRACE, OPEN_BRACKET] = [0x22, 0x7b, 0x5b];
const [CLOSE_BRACE, CLOSE_BRACKET, BACKSLASH, COLON, COMMA, SLASH, MINUS] = [
  0x7d, 0x5d, 0x5c, 0x3a, 0x2c, 0x2f, 0x2d,
];
const [SPACE, TAB, LINE_FEED, CARRIAGE_RETURN] = [0x20, 0x09, 0x0a, 0x0d];

const isSpace = (byte: number): boolean =>
  byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB;
const isHexDigit = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
const isHex = (part: Buffer, at: number): boolean =>
  at + 3 < part.length &&
  isHexDigit(part[at]!) &&
  isHexDigit(part[at + 1]!) &&
  isHexDigit(part[at + 2]!) &&
  isHexDigit(part[at + 3]!);
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;

/** What follows a backslash, `u` apart. */
const ESCAPED = new Set([QUOTE, BACKSLASH, SLASH, ...Buffer.from('bfnrt')]);
const LETTER_U = 0x75;

const LITERALS = new Map(['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)]));

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** What is expected next. */
type State =
  | 'start'
  | 'mark'
  | 'value'
  | 'first value'
  | 'key'
  | 'first key'
  | 'colon'
  | 'next'
  | 'string'
  | 'escape'
  | 'hex'
  | 'number'
  | 'literal';

type Container = typeof NONE | typeof ARRAY | typeof OBJECT | typeof CONSTRUCTOR;
const NONE = 0;
const ARRAY = 1;
const OBJECT = 2;
/** The object of a key `constructor`. */
const CONSTRUCTOR = 3;

const malformed = () => invalid('body: malformed JSON');

/** Scans one body, part by part. Throws `VALIDATION_ERROR` where it is no JSON, or has keys that reach for a prototype. */
export class JsonScanner {
  readonly #listener: JsonListener;
  readonly #number = new NumberScanner();
  #state: State = 'start';
  #containers = new Uint8Array(64);
  #depth = 0;
  /** Of a literal, of the four digits of an escape, or of the byte order mark: how much of it has come. */
  #progress = 0;
  #literal = BYTE_ORDER_MARK;
  #isKey = false;
  #hasEscapes = false;
  /** What came of a key with the parts before this one, and where it goes on in this one. */
  #keyHead = '';
  #keyAt = 0;
  #isConstructor = false;

  constructor(listener: JsonListener) {
    this.#listener = listener;
  }

  push(part: Buffer): void {
    this.#keyAt = 0;
    for (let at = 0; at < part.length; ) at = this.#advance(part, at);
    const isInKey =
      this.#isKey && (this.#state === 'string' || this.#state === 'escape' || this.#state === 'hex');
    if (isInKey) this.#keyHead = this.#readKey(part, part.length);
  }

  /** The body has ended; throws where it is not whole. */
  end(): void {
    if (this.#state === 'number') this.#endNumber(0);
    if (this.#state !== 'next' || this.#depth > 0) throw malformed();
  }

  /** Takes what comes at this place; gives the next one. */
  #advance(part: Buffer, at: number): number {
    switch (this.#state) {
      case 'string':
        return this.#readString(part, at);
      case 'escape':
        return this.#readEscape(part[at]!, at);
      case 'hex':
        return this.#readHex(part[at]!, at);
      case 'number':
        return this.#readNumber(part, at);
      case 'literal':
      case 'mark':
        return this.#readLiteral(part[at]!, at);
      default:
        return this.#readStructure(part, at);
    }
  }

  #readStructure(part: Buffer, start: number): number {
    let at = start;
    if (this.#state === 'start') {
      this.#state = part[at] === BYTE_ORDER_MARK[0] ? 'mark' : 'value';
      return at;
    }
    while (at < part.length && isSpace(part[at]!)) at += 1;
    if (at === part.length) return at;
    const byte = part[at]!;
    switch (this.#state) {
      case 'value':
        return this.#beginValue(byte, at);
      case 'first value':
        return byte === CLOSE_BRACKET ? this.#close(byte, at) : this.#beginValue(byte, at);
      case 'key':
        return this.#beginKey(byte, at);
      case 'first key':
        return byte === CLOSE_BRACE ? this.#close(byte, at) : this.#beginKey(byte, at);
      case 'colon':
        if (byte !== COLON) throw malformed();
        this.#state = 'value';
        return at + 1;
      default:
        return byte === COMMA ? this.#readComma(at) : this.#close(byte, at);
    }
  }

  #beginKey(byte: number, at: number): number {
    if (byte !== QUOTE) throw malformed();
    this.#isKey = true;
    this.#hasEscapes = false;
    this.#keyHead = '';
    this.#keyAt = at + 1;
    this.#state = 'string';
    return at + 1;
  }

  #beginValue(byte: number, at: number): number {
    if (this.#depth <= HEARD_DEPTH) this.#listener.onBegin(this.#depth, byte, at);
    const isConstructor = this.#isConstructor;
    this.#isConstructor = false;
    if (byte === QUOTE) {
      this.#isKey = false;
      this.#state = 'string';
    } else if (byte === OPEN_BRACE) this.#open(isConstructor ? CONSTRUCTOR : OBJECT, 'first key');
    else if (byte === OPEN_BRACKET) this.#open(ARRAY, 'first value');
    else if (byte === MINUS || isDigit(byte)) {
      this.#number.begin(byte);
      this.#state = 'number';
    } else {
      this.#literal = LITERALS.get(byte) ?? BYTE_ORDER_MARK;
      if (this.#literal === BYTE_ORDER_MARK) throw malformed();
      this.#progress = 1;
      this.#state = 'literal';
    }
    return at + 1;
  }

  #open(container: Container, state: State): void {
    if (this.#depth >= MAX_DEPTH) throw invalid(`body: nested deeper than ${MAX_DEPTH} levels`);
    this.#depth += 1;
    if (this.#depth >= this.#containers.length) {
      const longer = new Uint8Array(this.#containers.length * 2);
      longer.set(this.#containers);
      this.#containers = longer;
    }
    this.#containers[this.#depth] = container;
    this.#state = state;
  }

  #close(byte: number, at: number): number {
    const container = this.#containers[this.#depth];
    const isItsOwn =
      byte === CLOSE_BRACKET ? container === ARRAY : byte === CLOSE_BRACE && container! >= OBJECT;
    if (!isItsOwn) throw malformed();
    this.#depth -= 1;
    this.#endValue(at + 1);
    return at + 1;
  }

  #readComma(at: number): number {
    const container = this.#containers[this.#depth];
    if (container === NONE) throw malformed();
    this.#state = container === ARRAY ? 'value' : 'key';
    return at + 1;
  }

  #endValue(at: number): void {
    this.#state = 'next';
    if (this.#depth <= HEARD_DEPTH) this.#listener.onEnd(this.#depth, at);
  }

  #readString(part: Buffer, start: number): number {
    const { length } = part;
    let byte = SPACE;
    let at = start;
    for (; at < length; at += 1) {
      byte = part[at]!;
      if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) break;
    }
    if (at === length) return at;
    if (byte === BACKSLASH) return this.#beginEscape(part, at);
    if (byte !== QUOTE) throw malformed();
    if (this.#isKey) this.#endKey(part, at);
    else this.#endValue(at + 1);
    return at + 1;
  }

  /** An escape that this part has whole is one step, for text may hold nothing else. */
  #beginEscape(part: Buffer, at: number): number {
    this.#hasEscapes = true;
    if (part[at + 1] === LETTER_U && isHex(part, at + 2)) return at + 6;
    this.#state = 'escape';
    return at + 1;
  }

  #readEscape(byte: number, at: number): number {
    if (byte !== LETTER_U && !ESCAPED.has(byte)) throw malformed();
    this.#progress = 0;
    this.#state = byte === LETTER_U ? 'hex' : 'string';
    return at + 1;
  }

  #readHex(byte: number, at: number): number {
    if (!isHexDigit(byte)) throw malformed();
    this.#progress += 1;
    if (this.#progress === 4) this.#state = 'string';
    return at + 1;
  }

  #readNumber(part: Buffer, start: number): number {
    const at = this.#number.read(part, start);
    if (at < part.length) this.#endNumber(at);
    return at;
  }

  #endNumber(at: number): void {
    if (!this.#number.isWhole) throw malformed();
    this.#endValue(at);
  }

  #readLiteral(byte: number, at: number): number {
    if (byte !== this.#literal[this.#progress]) throw malformed();
    this.#progress += 1;
    if (this.#progress < this.#literal.length) return at + 1;
    if (this.#state === 'mark') this.#state = 'value';
    else this.#endValue(at + 1);
    return at + 1;
  }

  /** What is known of a key that began in this part or one before, up to this place; a long one is not kept whole. */
  #readKey(part: Buffer, end: number): string {
    const room = LONGEST_KEY_BYTES + 1 - this.#keyHead.length;
    return this.#keyHead + part.toString('latin1', this.#keyAt, Math.min(end, this.#keyAt + room));
  }

  #endKey(part: Buffer, end: number): void {
    this.#state = 'colon';
    const length = this.#keyHead.length + end - this.#keyAt;
    const mayMatter = this.#hasEscapes || length === '__proto__'.length || length === 'constructor'.length;
    if (this.#depth > 1 && !mayMatter) return;
    const spelled = this.#readKey(part, end);
    const isLong = spelled.length > LONGEST_KEY_BYTES;
    const name: string | undefined = isLong
      ? undefined
      : this.#hasEscapes
        ? JSON.parse(`"${spelled}"`)
        : spelled;
    this.#refusePrototype(name);
    if (this.#depth === 1) this.#listener.onKey(name);
  }

  /** Wherever it stands, even where a later key of the same name would take its place. */
  #refusePrototype(name: string | undefined): void {
    const isWithin = name === 'prototype' && this.#containers[this.#depth] === CONSTRUCTOR;
    if (name === '__proto__' || isWithin) throw malformed();
    this.#isConstructor = name === 'constructor';
  }
}
