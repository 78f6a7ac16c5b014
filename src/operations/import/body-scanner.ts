import { invalid } from '../../domain/errors.ts';
import { BOUNDS } from '../../domain/fields.ts';
import {
  type JsonListener,
  JsonScanner,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../domain/json-scanner.ts';
import { EntryBytes } from './entry-bytes.ts';
import { Utf8Check } from './utf8-check.ts';

/** `replace`, each character escaped. */
const LONGEST_MODE_BYTES = 44;

/**
 * An import's body as it arrives (spec 4.4), in parts cut anywhere: its faults are found where they stand, and its entries
 * handed on unread. Of a field that is there twice the last one counts, as with `JSON.parse`.
 */
export class BodyScanner implements JsonListener {
  readonly #json = new JsonScanner(this);
  readonly #utf8 = new Utf8Check();
  #part: Buffer = Buffer.alloc(0);
  #isEmpty = true;
  #isObject = false;
  #key: string | undefined;
  #bookmarks: 'absent' | 'array' | 'other' = 'absent';
  #isInBookmarks = false;
  #entries = 0;
  #bytes = new EntryBytes();
  #restarts = 0;
  #mode: unknown = 'merge';
  /** What came of the mode with the parts before this one, and where it goes on in this one. */
  #modeHead = '';
  #modeAt: number | undefined;

  /** Takes the next bytes; throws `VALIDATION_ERROR` where they show that this is no import. */
  push(part: Buffer): void {
    if (part.length === 0) return;
    this.#isEmpty = false;
    if (!this.#utf8.push(part)) throw invalid('body: is not UTF-8');
    this.#part = part;
    this.#bytes.beginPart(part);
    this.#json.push(part);
    this.#bytes.endPart();
    if (this.#modeAt !== undefined) {
      this.#modeHead = this.#readMode(part.length);
      this.#modeAt = 0;
    }
  }

  /** The body has ended: whether it replaces. Throws `VALIDATION_ERROR` where it is not whole, or lacks a field. */
  end(): { replace: boolean } {
    if (this.#isEmpty) throw invalid('body: is required');
    if (!this.#utf8.isWhole) throw invalid('body: is not UTF-8');
    this.#json.end();
    if (!this.#isObject) throw invalid('body: expected an object');
    if (this.#bookmarks === 'absent') throw invalid('bookmarks: is required');
    if (this.#bookmarks === 'other') throw invalid('bookmarks: expected an array');
    if (this.#mode !== 'merge' && this.#mode !== 'replace')
      throw invalid('mode: expected "merge" or "replace"');
    return { replace: this.#mode === 'replace' };
  }

  /** How often the array of bookmarks began anew: what was taken before is void. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Bytes of whole entries that can be taken. */
  get takeable(): number {
    return this.#bytes.whole;
  }

  /** Takes the entries that have come whole: as they were sent, with commas and white space between. */
  take(): Buffer {
    return this.#bytes.take();
  }

  onKey(name: string | undefined): void {
    this.#key = name;
  }

  onBegin(depth: number, byte: number, at: number): void {
    if (depth === 0) this.#isObject = byte === OPEN_BRACE;
    else if (depth === 2) {
      if (this.#isInBookmarks) this.#beginEntry(at);
    } else if (this.#key === 'bookmarks') this.#beginBookmarks(byte === OPEN_BRACKET);
    else if (this.#key === 'mode') {
      this.#mode = undefined;
      this.#modeHead = '';
      this.#modeAt = byte === QUOTE ? at : undefined;
    }
  }

  onEnd(depth: number, at: number): void {
    if (depth === 2 && this.#isInBookmarks) this.#bytes.endEntry(at);
    else if (depth === 1) {
      this.#isInBookmarks = false;
      if (this.#modeAt !== undefined) this.#endMode(at);
    }
  }

  #beginBookmarks(isArray: boolean): void {
    if (this.#bookmarks === 'array') this.#restarts += 1;
    this.#bookmarks = isArray ? 'array' : 'other';
    this.#isInBookmarks = isArray;
    this.#entries = 0;
    this.#bytes = new EntryBytes();
    this.#bytes.beginPart(this.#part);
  }

  #beginEntry(at: number): void {
    this.#entries += 1;
    if (this.#entries > BOUNDS.importEntries)
      throw invalid(`bookmarks: at most ${BOUNDS.importEntries} entries`);
    this.#bytes.beginEntry(at);
  }

  #readMode(end: number): string {
    const room = LONGEST_MODE_BYTES + 1 - this.#modeHead.length;
    return this.#modeHead + this.#part.toString('latin1', this.#modeAt, Math.min(end, this.#modeAt! + room));
  }

  #endMode(at: number): void {
    const spelled = this.#readMode(at);
    this.#modeAt = undefined;
    this.#mode = spelled.length > LONGEST_MODE_BYTES ? undefined : JSON.parse(spelled);
  }
}
