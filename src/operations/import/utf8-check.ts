import { isUtf8 } from 'node:buffer';

/** How many bytes at the end begin a character and do not end it: none to three. */
function countOpenBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    // No character begins with 0xf8 or more.
    if (byte >= 0xc0) return byte < 0xf8 && lengthOf(byte) > back ? back : 0;
    if (byte < 0x80) return 0;
  }
  return 0;
}

/** How many bytes a character has that begins with this one. */
const lengthOf = (byte: number): number => (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2);

/** Whether bytes that come in parts, cut anywhere, are UTF-8. */
export class Utf8Check {
  /** The beginning of a character that the last part broke off in. */
  #open = Buffer.alloc(0);

  /** False where the bytes so far cannot be UTF-8, whatever follows. */
  push(part: Buffer): boolean {
    let rest = part;
    if (this.#open.length > 0) {
      const missing = lengthOf(this.#open[0]!) - this.#open.length;
      this.#open = Buffer.concat([this.#open, part.subarray(0, missing)]);
      if (part.length < missing) return true;
      if (!isUtf8(this.#open)) return false;
      rest = part.subarray(missing);
    }
    const whole = rest.length - countOpenBytes(rest);
    this.#open = Buffer.from(rest.subarray(whole));
    return isUtf8(rest.subarray(0, whole));
  }

  /** Whether the bytes may end here. */
  get isWhole(): boolean {
    return this.#open.length === 0;
  }
}
