import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { displayTable, type Table } from './table.ts';

/** Where a command reads and writes; tests give their own. */
export interface Streams {
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { isTTY?: boolean; columns?: number };
  stderr: Writable & { isTTY?: boolean; columns?: number };
}

/** What a command says: answers on standard output, all else on standard error. */
export class Terminal {
  readonly streams: Streams;
  /** Answers are JSON, for programs. */
  readonly isJson: boolean;
  readonly #isPlain: boolean;

  constructor(streams: Streams, { json, plain }: { json: boolean; plain: boolean }) {
    this.streams = streams;
    this.isJson = json;
    this.#isPlain = plain;
  }

  /** Writes to standard output, as fast as its reader takes it. */
  async write(text: string | Uint8Array): Promise<void> {
    const { stdout } = this.streams;
    if (!stdout.write(text)) await once(stdout, 'drain');
  }

  /** An answer: as one line of JSON, or in words. */
  answer(value: unknown, words: () => string): Promise<void> {
    return this.write(`${this.isJson ? JSON.stringify(value) : words()}\n`);
  }

  /** An answer as a table: aligned and cut to the screen for people, whole and parted by tabs for other programs. */
  table(table: Table, { header = true } = {}): Promise<void> {
    const { stdout } = this.streams;
    if (!stdout.isTTY) return this.write(table.rows.map((row) => `${row.join('\t')}\n`).join(''));
    const lines = displayTable(table, stdout.columns ?? 80);
    const [head, ...rows] = lines;
    const shown = header ? [this.#isPlain ? head! : `\u001b[1m${head}\u001b[22m`, ...rows] : rows;
    return this.write(shown.map((line) => `${line}\n`).join(''));
  }

  /** A word to the person at the screen. */
  note(text: string): void {
    this.streams.stderr.write(`${text}\n`);
  }

  /** Shows how long work goes, in one line that changes; nothing where nobody looks. The answer ends it. */
  progress(): Progress {
    const { stderr } = this.streams;
    return new Progress(stderr.isTTY === true && !this.isJson ? stderr : undefined);
  }
}

const REDRAW_MS = 100;

/** A line on standard error that tells where work stands, and is gone when the work is. */
export class Progress implements Disposable {
  readonly #stream: Streams['stderr'] | undefined;
  readonly #beganAt = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #text = '';

  constructor(stream: Streams['stderr'] | undefined) {
    this.#stream = stream;
    if (stream !== undefined) this.#timer = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  set(text: string): void {
    if (this.#text === '') {
      this.#text = text;
      this.#draw();
    }
    this.#text = text;
  }

  #draw(): void {
    if (this.#text === '') return;
    const seconds = Math.floor((performance.now() - this.#beganAt) / 1_000);
    const line = seconds < 2 ? this.#text : `${this.#text} (${seconds} s)`;
    this.#stream?.write(`\r\u001b[2K${line.slice(0, (this.#stream.columns ?? 80) - 1)}`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    if (this.#text !== '') this.#stream?.write('\r\u001b[2K');
    this.#text = '';
  }
}
