/** A part so long is kept as it came; shorter ones are copied together, for a buffer takes some 200 bytes beside its own. */
const LONG_PART_BYTES = 4_096;

const FIRST_BLOCK_BYTES = 1_024;
const LONGEST_BLOCK_BYTES = 65_536;

/** Bytes that arrive in parts, however short: what it takes is at most some twice their number. */
export class ByteList {
  #blocks: Buffer[] = [];
  /** What short parts are copied to, and how far it is filled. */
  #block: Buffer | undefined;
  #filled = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(part: Buffer): void {
    this.#length += part.length;
    const isFirst = this.#blocks.length === 0 && this.#block === undefined;
    if (isFirst || part.length >= LONG_PART_BYTES) {
      this.#close();
      this.#blocks.push(part);
      return;
    }
    if (this.#block === undefined || this.#block.length - this.#filled < part.length) this.#open(part.length);
    this.#filled += part.copy(this.#block!, this.#filled);
  }

  /** All of it in one buffer. */
  concat(): Buffer {
    this.#close();
    return this.#blocks.length === 1 ? this.#blocks[0]! : Buffer.concat(this.#blocks, this.#length);
  }

  /** All of it in one buffer; the list is empty from then on. */
  take(): Buffer {
    const all = this.concat();
    this.#blocks = [];
    this.#length = 0;
    return all;
  }

  #open(partBytes: number): void {
    const doubled = Math.min(2 * (this.#block?.length ?? FIRST_BLOCK_BYTES / 2), LONGEST_BLOCK_BYTES);
    this.#close();
    this.#block = Buffer.allocUnsafeSlow(Math.max(doubled, partBytes));
  }

  #close(): void {
    if (this.#block !== undefined) this.#blocks.push(this.#block.subarray(0, this.#filled));
    this.#block = undefined;
    this.#filled = 0;
  }
}
