/** The message that marks the end of the start. */
export const LISTENING = 'listening';

const WARN = 40;

const LEVELS: Record<number, string> = { 10: 'trace', 20: 'debug', 40: 'warning', 50: 'error', 60: 'fatal' };

const CLEAR_LINE = '\r\u001b[2K';

/** Removes control characters from values that a client may have sent. */
const toPlain = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u007f-\u009f\u2028-\u202e]/g, '');

/**
 * Prints pino's lines for people. Until the service listens, everything below a warning shares one line, which then
 * disappears.
 */
export class TerminalLog {
  readonly #out: { write(text: string): unknown; columns?: number };
  #isStarting: boolean;

  constructor(out: { write(text: string): unknown; columns?: number }, isStarting: boolean) {
    this.#out = out;
    this.#isStarting = isStarting;
  }

  write(line: string): void {
    const { level, time, msg, err, ...facts } = JSON.parse(line);
    const words = toPlain(msg ?? '').slice(1, -1);
    if (this.#isStarting && level < WARN) {
      this.#isStarting = msg !== LISTENING;
      const progress = `Starting: ${words} …`.slice(0, (this.#out.columns || 80) - 1);
      this.#out.write(CLEAR_LINE + (this.#isStarting ? progress : ''));
      if (this.#isStarting || facts.origin === undefined) return;
    }
    const parts = [String(time).slice(11, 19), LEVELS[level], words];
    for (const [name, value] of Object.entries(facts)) parts.push(`${name}=${toPlain(value)}`);
    if (err !== undefined) parts.push(toPlain(err));
    this.#out.write(`${this.#isStarting ? CLEAR_LINE : ''}${parts.filter(Boolean).join(' ')}\n`);
  }
}
