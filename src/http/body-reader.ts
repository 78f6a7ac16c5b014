import { IncomingMessage } from 'node:http';
import { invalid } from '../domain/errors.ts';

/**
 * Reads request bodies at a pace. A client may send its body in chunks of one byte, and Node emits an event for each one. So
 * reading pauses for the time that the chunks cost, and clients with many small chunks do not slow others down.
 */

/** The time that a chunk counts for, in milliseconds. 50,000 chunks a second take a tenth of a core. */
const PART_MS = 0.02;

/** A body pauses after this many chunks. A body in chunks of 64 KiB has read 16 MiB by then. */
const PARTS_AT_ONCE = 256;

/** Reading pauses while this many bytes wait for the reader. */
const AHEAD_BYTES = 65_536;

/** Shares time among the bodies of one key, which is a user's id, or undefined for requests without a token. */
export class PartPace {
  readonly #busyUntilMs = new Map<number | undefined, number>();

  /** Reserves the time for this many chunks. Returns the milliseconds until it is over. */
  take(key: number | undefined, parts: number): number {
    const now = performance.now();
    const from = Math.max(now, this.#busyUntilMs.get(key) ?? 0);
    const until = from + parts * PART_MS;
    this.#busyUntilMs.set(key, until);
    return until - now;
  }

  /** Forgets a key whose time is over. */
  forget(key: number | undefined): void {
    if ((this.#busyUntilMs.get(key) ?? 0) <= performance.now()) this.#busyUntilMs.delete(key);
  }
}

/** Reads one body. It reads little until `begin`, and then no faster than its reader and the pace allow. */
export class BodyReader {
  readonly #body: IncomingMessage;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  /** Set once somebody wants the body. */
  #pace: { of: PartPace; key: number | undefined } | undefined;
  /** Parts that came since time was last taken for some. */
  #parts = 0;
  #timer: NodeJS.Timeout | undefined;
  #isPaused = false;
  #isDropped = false;
  #end: 'whole' | 'broken' | undefined;
  #wake: (() => void) | undefined;
  #waking: NodeJS.Immediate | undefined;

  constructor(body: IncomingMessage) {
    this.#body = body;
    // Readable asks for more after each part, whoever has paused the socket.
    body._read = (bytes) => {
      if (!this.#isPaused) IncomingMessage.prototype._read.call(body, bytes);
    };
    body.on('data', (part: Buffer) => this.#add(part));
    body.once('end', () => this.#finish('whole'));
    body.once('error', () => this.#finish('broken'));
    body.once('close', () => this.#finish('broken'));
  }

  /** From now on the body is read, at the pace of this key. */
  begin(pace: PartPace, key: number | undefined): void {
    this.#pace = { of: pace, key };
    if (this.#parts >= PARTS_AT_ONCE) this.#rest();
    this.#setFlow();
  }

  /** The next bytes, one at least; undefined at the end. Throws `VALIDATION_ERROR` where the client went before. */
  async next(): Promise<Buffer | undefined> {
    while (this.#gatheredBytes === 0 && this.#end === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (this.#gatheredBytes > 0) {
      const bytes = this.#take();
      this.#setFlow();
      return bytes;
    }
    if (this.#end === 'broken') throw invalid('body: broke off');
    return undefined;
  }

  /** Reads on and drops what comes: many clients read a response only once they have sent everything. */
  drop(pace: PartPace): void {
    if (this.#end !== undefined) return;
    this.#isDropped = true;
    this.#take();
    if (this.#pace === undefined) this.begin(pace, undefined);
    this.#setFlow();
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    return bytes;
  }

  #add(part: Buffer): void {
    this.#parts += 1;
    if (!this.#isDropped) {
      this.#gathered.push(part);
      this.#gatheredBytes += part.length;
    }
    if (this.#parts >= PARTS_AT_ONCE && this.#timer === undefined) this.#rest();
    this.#setFlow();
    // The other parts of the same read come in the same tick.
    if (this.#wake !== undefined) this.#waking ??= setImmediate(() => this.#wakeReader());
  }

  /** Waits for the time of the parts that came, and again for that of those that come meanwhile. */
  #rest(): void {
    if (this.#pace === undefined) return;
    const { of, key } = this.#pace;
    const waitMs = of.take(key, this.#parts);
    this.#parts = 0;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      of.forget(key);
      if (this.#parts >= PARTS_AT_ONCE) this.#rest();
      this.#setFlow();
    }, waitMs);
  }

  get #mustPause(): boolean {
    if (this.#end !== undefined) return false;
    if (this.#timer !== undefined || this.#gatheredBytes >= AHEAD_BYTES) return true;
    return this.#pace === undefined && this.#parts >= PARTS_AT_ONCE;
  }

  #setFlow(): void {
    const mustPause = this.#mustPause;
    if (mustPause === this.#isPaused) return;
    this.#isPaused = mustPause;
    const { socket } = this.#body;
    if (mustPause) socket.pause();
    else socket.resume();
  }

  /** The time of what came last is taken too: the next body of the key waits for it. */
  #finish(end: 'whole' | 'broken'): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    if (this.#parts >= PARTS_AT_ONCE) this.#rest();
    this.#setFlow();
    this.#wakeReader();
  }

  #wakeReader(): void {
    clearImmediate(this.#waking);
    this.#waking = undefined;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
