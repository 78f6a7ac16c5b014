/** What has come of a number so far. */
type Seen = 'minus' | 'zero' | 'integer' | 'point' | 'fraction' | 'e' | 'e sign' | 'exponent';

const [ZERO, NINE, PLUS, MINUS, POINT, LETTER_E] = [0x30, 0x39, 0x2b, 0x2d, 0x2e, 0x65];

const WHOLE: ReadonlySet<Seen> = new Set(['zero', 'integer', 'fraction', 'exponent']);

const afterDigit: Readonly<Record<Seen, Seen | undefined>> = {
  minus: 'integer',
  zero: undefined,
  integer: 'integer',
  point: 'fraction',
  fraction: 'fraction',
  e: 'exponent',
  'e sign': 'exponent',
  exponent: 'exponent',
};

/** What the number is after one more byte; undefined where the byte cannot belong to it. */
function nextOf(seen: Seen, byte: number): Seen | undefined {
  if (byte === ZERO && seen === 'minus') return 'zero';
  if (byte >= ZERO && byte <= NINE) return afterDigit[seen];
  if (byte === POINT) return seen === 'zero' || seen === 'integer' ? 'point' : undefined;
  if ((byte | 0x20) === LETTER_E) {
    return seen === 'zero' || seen === 'integer' || seen === 'fraction' ? 'e' : undefined;
  }
  return (byte === PLUS || byte === MINUS) && seen === 'e' ? 'e sign' : undefined;
}

/** The number of RFC 8259, however long, in parts cut anywhere. */
export class NumberScanner {
  #seen: Seen = 'minus';

  /** Whether the number may end here. */
  get isWhole(): boolean {
    return WHOLE.has(this.#seen);
  }

  /** A number begins with this byte, a digit or a minus. */
  begin(byte: number): void {
    this.#seen = byte === MINUS ? 'minus' : nextOf('minus', byte)!;
  }

  /** Reads on; gives the place of the first byte that is not the number's. */
  read(part: Buffer, start: number): number {
    for (let at = start; at < part.length; at += 1) {
      const next = nextOf(this.#seen, part[at]!);
      if (next === undefined) return at;
      this.#seen = next;
    }
    return part.length;
  }
}
