import { ByteList } from '../../concurrency/byte-list.ts';

/** An entry with more bytes is not read: it is an error of its own (decision 33). */
export const MAX_ENTRY_BYTES = 524_288;

/** Stands where an entry was too large; no JSON begins like this. */
export const OVERSIZED = '!';

const OVERSIZED_BYTES = Buffer.from(OVERSIZED);
const COMMA_BYTES = Buffer.from(',');

/** White space between two entries that goes with them: to cut it out would cost more than it takes. */
const GAP_BYTES = 64;

/** Gathers the bytes of entries out of the parts of a body. Places are those of the part at hand. */
export class EntryBytes {
  #part: Buffer = Buffer.alloc(0);
  #kept = new ByteList();
  /** Of those, the ones up to the end of the last whole entry. */
  #wholeBytes = 0;
  /** Entries of this part that are not among the kept ones yet: from here to the end of the last one. */
  #from: number | undefined;
  #to = 0;
  /** Where the entry at hand begins, counted in kept bytes. */
  #entryAt = 0;
  #entry: 'none' | 'open' | 'oversized' = 'none';

  beginPart(part: Buffer): void {
    this.#part = part;
    if (this.#entry === 'open') this.#from = 0;
  }

  beginEntry(at: number): void {
    if (this.#from !== undefined && at - this.#to > GAP_BYTES) this.#keep(this.#to);
    if (this.#from === undefined) {
      this.#add(COMMA_BYTES);
      this.#from = at;
    }
    this.#entryAt = this.#place(at);
    this.#entry = 'open';
  }

  /** The entry ended before this place. */
  endEntry(at: number): void {
    if (this.#entry === 'open' && this.#place(at) - this.#entryAt > MAX_ENTRY_BYTES) this.#leaveOut(at);
    if (this.#entry === 'open') {
      this.#to = at;
      this.#wholeBytes = this.#place(at);
    }
    this.#entry = 'none';
  }

  endPart(): void {
    if (this.#from === undefined) return;
    this.#keep(this.#entry === 'open' ? this.#part.length : this.#to);
    if (this.#entry === 'open' && this.#kept.length - this.#entryAt > MAX_ENTRY_BYTES) this.#leaveOut(0);
  }

  get whole(): number {
    return this.#wholeBytes;
  }

  /** Between two parts: takes the whole entries out. */
  take(): Buffer {
    const all = this.#kept.take();
    const whole = all.subarray(0, this.#wholeBytes);
    const rest = all.subarray(this.#wholeBytes);
    if (rest.length > 0) this.#kept.add(rest);
    this.#entryAt -= this.#wholeBytes;
    this.#wholeBytes = 0;
    return whole;
  }

  /** A place of this part, counted in kept bytes. */
  #place(at: number): number {
    return this.#kept.length + at - this.#from!;
  }

  #add(bytes: Buffer): void {
    this.#kept.add(bytes);
  }

  #keep(to: number): void {
    this.#add(this.#part.subarray(this.#from, to));
    this.#from = undefined;
  }

  /** Drops what is kept of the entry at hand, and puts the mark in its place. */
  #leaveOut(at: number): void {
    if (this.#from !== undefined) this.#keep(at);
    const before = this.#kept.take().subarray(0, this.#entryAt);
    if (before.length > 0) this.#kept.add(before);
    this.#kept.add(OVERSIZED_BYTES);
    this.#wholeBytes = this.#kept.length;
    this.#entry = 'oversized';
  }
}
