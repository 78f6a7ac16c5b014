import { checkBytes, parseJson } from './json.ts';
import { type JsonListener, JsonScanner, OPEN_BRACE, OPEN_BRACKET } from './json-scanner.ts';

/** A shorter body is parsed as it is, like that of any other route. A body with `items`, which are objects, is shorter. */
const PARSED_WHOLE_BYTES = 65_536;

/**
 * Parses a JSON body of fields that are texts, numbers or lists of such, and makes nothing of what else is in it: half a
 * megabyte of objects that all differ would take 300 ms. Unknown fields are left out, and an object or a list where none
 * can be becomes an empty one, which is as wrong. Throws `VALIDATION_ERROR` like `parseJson`.
 */
export function parseFields(bytes: Buffer, fields: ReadonlySet<string>): unknown {
  if (bytes.length <= PARSED_WHOLE_BYTES) return parseJson(bytes);
  checkBytes(bytes);
  const picker = new FieldPicker(bytes, fields);
  const scanner = new JsonScanner(picker);
  scanner.push(bytes);
  scanner.end();
  return picker.read();
}

/** Copies the known fields of a body out of it. */
class FieldPicker implements JsonListener {
  readonly #bytes: Buffer;
  readonly #fields: ReadonlySet<string>;
  readonly #members: string[] = [];
  #isObject = false;
  #key: string | undefined;
  #isKept = false;
  /** What was copied of the field's value, and the place from which the rest is. */
  #text = '';
  #from = 0;
  /** An object or a list, which was copied as an empty one, goes on at this depth. */
  #emptyDepth: number | undefined;

  constructor(bytes: Buffer, fields: ReadonlySet<string>) {
    this.#bytes = bytes;
    this.#fields = fields;
  }

  onKey(name: string | undefined): void {
    this.#key = name;
  }

  onBegin(depth: number, byte: number, at: number): void {
    if (depth === 0) this.#isObject = byte === OPEN_BRACE;
    if (depth === 1) {
      this.#isKept = this.#isObject && this.#key !== undefined && this.#fields.has(this.#key);
      this.#text = '';
      this.#from = at;
    }
    if (depth === 0 || !this.#isKept || this.#emptyDepth !== undefined) return;
    if (byte !== OPEN_BRACE && (byte !== OPEN_BRACKET || depth === 1)) return;
    this.#text += this.#copyTo(at) + (byte === OPEN_BRACE ? '{}' : '[]');
    this.#emptyDepth = depth;
  }

  onEnd(depth: number, at: number): void {
    if (depth === this.#emptyDepth) {
      this.#from = at;
      this.#emptyDepth = undefined;
    }
    if (depth === 1 && this.#isKept)
      this.#members.push(`${JSON.stringify(this.#key)}:${this.#text}${this.#copyTo(at)}`);
  }

  /** The fields; of what is no object an empty list, which is none either. */
  read(): unknown {
    return this.#isObject ? JSON.parse(`{${this.#members.join(',')}}`) : [];
  }

  #copyTo(at: number): string {
    return this.#bytes.toString('utf8', this.#from, at);
  }
}
