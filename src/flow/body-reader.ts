import type { IncomingMessage } from 'node:http';
import { invalid } from '../domain/errors.ts';
import { pauseWith } from './node-internals.ts';

/**
 * Reads request bodies at a limited pace. A client may send its body in chunks of one byte, and handling a chunk takes
 * time. So the reader reserves a short time for each chunk of a user, and pauses until the reserved time is over. A
 * client with many small chunks thus slows down only itself.
 *
 * A reader is always in one of these states, and reads from the socket only in the first:
 *
 * - flowing: chunks are gathered for the caller of `next`, or discarded after `drop`.
 * - paused: too many bytes are gathered, too many chunks came before `begin`, or the reserved time is not over yet.
 * - ended: the body is complete or was aborted. The caller still gets the gathered bytes.
 */

/**
 * The reserved time for one chunk, in milliseconds. With this time, one user's chunks take at most a tenth of a core.
 */
const CHUNK_MS = 0.02;

/**
 * Time is reserved for at least this many chunks at a time. 256 chunks of 64 KiB are 16 MiB, so the reading of most
 * bodies never pauses.
 */
const CHUNKS_PER_PAUSE = 256;

/** Reading pauses while this many bytes are gathered. */
const MAX_GATHERED_BYTES = 65_536;

/**
 * Remembers when the reserved time of each key ends. A key is a user's id. All requests without a token share the key
 * `undefined`.
 */
export class ChunkPace {
  readonly #busyUntilMs = new Map<number | undefined, number>();

  /**
   * Reserves time for this number of chunks, after the key's earlier reservations. Returns the milliseconds until the
   * reserved time ends.
   */
  reserve(key: number | undefined, chunks: number): number {
    const now = performance.now();
    const from = Math.max(now, this.#busyUntilMs.get(key) ?? 0);
    const until = from + chunks * CHUNK_MS;
    this.#busyUntilMs.set(key, until);
    return until - now;
  }

  /** Forgets a key if its reserved time is over. */
  forget(key: number | undefined): void {
    if ((this.#busyUntilMs.get(key) ?? 0) <= performance.now()) this.#busyUntilMs.delete(key);
  }
}

/**
 * Reads one body. Before `begin`, it reads only a little. After that, it reads no faster than its caller and the pace
 * allow.
 */
export class BodyReader {
  readonly #body: IncomingMessage;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  /** Where this reader reserves time, and under which key. Set by `begin`. */
  #reservation: { pace: ChunkPace; key: number | undefined } | undefined;
  /** The number of chunks for which no time is reserved yet. */
  #chunks = 0;
  /** Runs until the reserved time is over. */
  #pauseTimer: NodeJS.Timeout | undefined;
  #isPaused = false;
  #isDropped = false;
  #end: 'complete' | 'aborted' | undefined;
  /** Resolves a pending `next`. */
  #resume: (() => void) | undefined;
  /** Set while a call of `#resumeCaller` is scheduled. */
  #resuming: NodeJS.Immediate | undefined;

  constructor(body: IncomingMessage) {
    this.#body = body;
    pauseWith(body, () => this.#isPaused);
    body.on('data', (chunk: Buffer) => this.#add(chunk));
    body.once('end', () => this.#finish('complete'));
    body.once('error', () => this.#finish('aborted'));
    body.once('close', () => this.#finish('aborted'));
  }

  /** Starts to read at the pace that is allowed for this key. */
  begin(pace: ChunkPace, key: number | undefined): void {
    this.#reservation = { pace, key };
    if (this.#chunks >= CHUNKS_PER_PAUSE) this.#reserveTime();
    this.#setFlow();
  }

  /** Returns the next bytes, at least one; undefined at the end. Throws `VALIDATION_ERROR` if the client aborted. */
  async next(): Promise<Buffer | undefined> {
    while (this.#gatheredBytes === 0 && this.#end === undefined)
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    if (this.#gatheredBytes > 0) {
      const bytes = this.#takeGathered();
      this.#setFlow();
      return bytes;
    }
    if (this.#end === 'aborted') throw invalid('body: was aborted');
    return undefined;
  }

  /**
   * Reads and discards the rest of the body, because many clients read the response only after they have sent the whole
   * body.
   */
  drop(pace: ChunkPace): void {
    if (this.#end !== undefined) return;
    this.#isDropped = true;
    this.#takeGathered();
    if (this.#reservation === undefined) this.begin(pace, undefined);
    this.#setFlow();
  }

  #takeGathered(): Buffer {
    const [first] = this.#gathered;
    // A single chunk is not copied.
    const bytes =
      first?.length === this.#gatheredBytes ? first : Buffer.concat(this.#gathered, this.#gatheredBytes);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    return bytes;
  }

  #add(chunk: Buffer): void {
    this.#chunks += 1;
    if (!this.#isDropped) {
      this.#gathered.push(chunk);
      this.#gatheredBytes += chunk.length;
    }
    if (this.#chunks >= CHUNKS_PER_PAUSE && this.#pauseTimer === undefined) this.#reserveTime();
    this.#setFlow();
    // One read of the socket can emit many chunks in the same tick. The caller gets all of them together.
    if (this.#resume !== undefined) this.#resuming ??= setImmediate(() => this.#resumeCaller());
  }

  /**
   * Reserves time for the new chunks, and pauses until the reserved time is over. Repeats both steps if many more
   * chunks have arrived by then. Does nothing before `begin`.
   */
  #reserveTime(): void {
    if (this.#reservation === undefined) return;
    const { pace, key } = this.#reservation;
    const waitMs = pace.reserve(key, this.#chunks);
    this.#chunks = 0;
    this.#pauseTimer = setTimeout(() => {
      this.#pauseTimer = undefined;
      pace.forget(key);
      if (this.#chunks >= CHUNKS_PER_PAUSE) this.#reserveTime();
      this.#setFlow();
    }, waitMs);
  }

  get #mustPause(): boolean {
    if (this.#end !== undefined) return false;
    if (this.#pauseTimer !== undefined || this.#gatheredBytes >= MAX_GATHERED_BYTES) return true;
    return this.#reservation === undefined && this.#chunks >= CHUNKS_PER_PAUSE;
  }

  /** Pauses or resumes the socket to match the state. */
  #setFlow(): void {
    const mustPause = this.#mustPause;
    if (mustPause === this.#isPaused) return;
    this.#isPaused = mustPause;
    const { socket } = this.#body;
    if (mustPause) socket.pause();
    else socket.resume();
  }

  /** Ends the body. If a pause is in progress, its timer reserves time for the chunks that came during the pause. */
  #finish(end: 'complete' | 'aborted'): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#setFlow();
    this.#resumeCaller();
  }

  #resumeCaller(): void {
    clearImmediate(this.#resuming);
    this.#resuming = undefined;
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }
}
