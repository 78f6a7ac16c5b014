/** The message that a process logs when its start is complete. */
export const LISTENING = 'listening';

const WARN = 40;

/** The word for each level, keyed by pino's number for the level. Lines of the usual level `info` (30) get no word. */
const LEVELS: Record<number, string> = { 10: 'trace', 20: 'debug', 40: 'warning', 50: 'error', 60: 'fatal' };

const CLEAR_LINE = '\r\u001b[2K';

/** Formats a value as JSON without characters that control the terminal, because a client may have sent the value. */
const toPlain = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u007f-\u009f\u2028-\u202e]/g, '');

/**
 * Prints pino's lines in a form for people. Until the service listens, each message that is less severe than a warning
 * replaces the previous one, in the same line. When the service listens, that line disappears.
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
      // `LISTENING` ends the start. If this message has the service's origin, it is printed as a line that stays.
      if (this.#isStarting || facts.origin === undefined) return;
    }
    const parts = [String(time).slice(11, 19), LEVELS[level], words];
    for (const [name, value] of Object.entries(facts)) parts.push(`${name}=${toPlain(value)}`);
    if (err !== undefined) parts.push(toPlain(err));
    this.#out.write(`${this.#isStarting ? CLEAR_LINE : ''}${parts.filter(Boolean).join(' ')}\n`);
  }
}
