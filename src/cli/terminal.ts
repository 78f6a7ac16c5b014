import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { writeOutControls } from './display-text.ts';
import { displayTable, type Table } from './table.ts';

/** The streams that a command reads and writes. Tests pass their own. */
export interface Streams {
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { isTTY?: boolean; columns?: number };
  stderr: Writable & { isTTY?: boolean; columns?: number };
}

/** Prints the results of a command to standard output, and everything else to standard error. */
export class Terminal {
  readonly streams: Streams;
  /** Whether results are printed as JSON. */
  readonly isJson: boolean;
  readonly #isPlain: boolean;
  readonly #decoder = new TextDecoder();
  #progress: Progress | undefined;

  constructor(streams: Streams, { json, plain }: { json: boolean; plain: boolean }) {
    this.streams = streams;
    this.isJson = json;
    this.#isPlain = plain;
  }

  /**
   * Writes to standard output. Resolves when more can be written. On a terminal, control characters are escaped, so
   * that text from the service cannot control the terminal. Files and pipes receive the text unchanged.
   */
  write(text: string | Uint8Array): Promise<void> {
    if (!this.streams.stdout.isTTY) return this.#send(text);
    return this.#send(
      writeOutControls(typeof text === 'string' ? text : this.#decoder.decode(text, { stream: true })),
    );
  }

  async #send(text: string | Uint8Array): Promise<void> {
    const { stdout } = this.streams;
    if (!stdout.write(text)) await once(stdout, 'drain');
  }

  /** Prints a result. With `--json`, prints `value` as a line of JSON, and otherwise the text that `words` returns. */
  print(value: unknown, words: () => string): Promise<void> {
    return this.write(`${this.isJson ? JSON.stringify(value) : words()}\n`);
  }

  /**
   * Prints a result as a table. On a terminal, the columns are aligned and cut to fit the screen. In a pipe or a file,
   * the cells are complete and separated by tabs, and there is no header.
   */
  table(table: Table, { header = true } = {}): Promise<void> {
    const { stdout } = this.streams;
    if (!stdout.isTTY) return this.write(table.rows.map((row) => `${row.join('\t')}\n`).join(''));
    const lines = displayTable(table, stdout.columns ?? 80);
    const [head = '', ...rows] = lines.map(writeOutControls);
    const styledHead = this.#isPlain ? head : `\u001b[1m${head}\u001b[22m`;
    const shown = header ? [styledHead, ...rows] : rows;
    return this.#send(shown.map((line) => `${line}\n`).join(''));
  }

  /** Prints a result as JSON or as a table. Instead of a table without rows, prints the message in `none` as a note. */
  async printTable(value: unknown, table: Table, none: string): Promise<void> {
    if (this.isJson) return this.print(value, () => '');
    if (table.rows.length === 0) return this.note(none);
    await this.table(table);
  }

  /** Prints a note for the user on standard error. */
  note(text: string): void {
    this.#progress?.clear();
    this.streams.stderr.write(`${writeOutControls(text)}\n`);
  }

  /** Starts a progress line on standard error. Prints nothing with `--json`, or if standard error is not a terminal. */
  progress(): Progress {
    const { stderr } = this.streams;
    this.#progress = new Progress(stderr.isTTY === true && !this.isJson ? stderr : undefined);
    return this.#progress;
  }
}

/** The interval at which a progress line is drawn again, with its present text and the seconds so far. */
const REDRAW_MS = 100;

/** A line on standard error that shows the progress of an operation. The line disappears when the operation ends. */
class Progress implements Disposable {
  readonly #stream: Streams['stderr'] | undefined;
  readonly #beganAt = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #text = '';

  constructor(stream: Streams['stderr'] | undefined) {
    this.#stream = stream;
    if (stream !== undefined) this.#timer = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  /**
   * Sets the text of the line. If the line was empty, draws the text immediately. Otherwise, the next redraw shows it.
   * An empty text removes the line from the screen.
   */
  set(text: string): void {
    if (text === '') this.clear();
    const isFirst = this.#text === '';
    this.#text = text;
    if (isFirst) this.#draw();
  }

  #draw(): void {
    if (this.#text === '') return;
    const seconds = Math.floor((performance.now() - this.#beganAt) / 1_000);
    const line = seconds < 2 ? this.#text : `${this.#text} (${seconds} s)`;
    this.#stream?.write(`\r\u001b[2K${writeOutControls(line).slice(0, (this.#stream.columns ?? 80) - 1)}`);
  }

  /** Removes the line from the screen until the next redraw. */
  clear(): void {
    if (this.#text !== '') this.#stream?.write('\r\u001b[2K');
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.clear();
    this.#text = '';
  }
}
