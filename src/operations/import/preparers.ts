import { type ChildProcess, fork } from 'node:child_process';
import { ApiError, invalid } from '../../domain/errors.ts';
import { decodeJson } from '../../domain/json.ts';
import type { ErrorCode } from '../../domain/resources.ts';
import type { PreparedImport } from '../../store/imports.ts';
import { parseImport } from './body.ts';
import { Preparation, type PreparationOptions } from './preparation.ts';

/**
 * Prepares imports: parses their bodies and checks their entries. A short body is parsed here. A longer one goes to a
 * process of its own with a heap limit and a time limit, because `JSON.parse` can be neither interrupted nor given less
 * memory: in a worker thread a full heap ends the whole process (decision record 0070).
 */

/** A body of up to this length is parsed in this process: the dearest JSON of this length takes some 15 ms. */
const PARSED_HERE_BYTES = 262_144;

/** The heap of the process: 100,000 entries in 64 MiB need about two thirds of it. */
const HEAP_MIB = 384;

/**
 * How long the process may work before it asks for something or ends. What it waits for does not count: a slow database makes
 * no body too complex. The longest ordinary body takes a few seconds, but the CPU of a shared host may be scarce.
 */
const TIME_LIMIT_MS = 60_000;

/** How long the process may leave a chunk of a body untaken. One that is stopped would hold up all imports behind it. */
const TAKE_LIMIT_MS = 60_000;

/** A process is kept for the next import for so long, unless a long body has made it large. */
const KEPT_MS = 30_000;
const KEPT_UP_TO_BYTES = 4_194_304;

/** What a process for preparation is sent. */
export type ToChild =
  | { type: 'chunk'; bytes: Uint8Array }
  | { type: 'prepare'; looksAhead: boolean; stages: boolean }
  | { type: 'result'; id: number; value: unknown };

/** What it sends. */
export type FromChild =
  | { type: 'call'; id: number; name: 'findKnown' | 'putPiece' | 'putErrors'; args: unknown[] }
  | { type: 'prepared'; prepared: PreparedImport }
  | { type: 'refused'; code: ErrorCode; message: string };

type PrepareOptions = Omit<PreparationOptions, 'replace'>;

const tooComplex = () => invalid('body: is too complex to be parsed');

interface PreparerLimits {
  heapMiB?: number;
  timeLimitMs?: number;
  takeLimitMs?: number;
}

/** One process at a time prepares long imports; the others wait for their turn. Close it at the end. */
export class Preparers {
  readonly #heapMiB: number;
  readonly #timeLimitMs: number;
  readonly #takeLimitMs: number;
  #turn: Promise<unknown> = Promise.resolve();
  #kept: ChildProcess | undefined;
  #keptTimer: NodeJS.Timeout | undefined;

  constructor({
    heapMiB = HEAP_MIB,
    timeLimitMs = TIME_LIMIT_MS,
    takeLimitMs = TAKE_LIMIT_MS,
  }: PreparerLimits = {}) {
    this.#heapMiB = heapMiB;
    this.#timeLimitMs = timeLimitMs;
    this.#takeLimitMs = takeLimitMs;
  }

  /**
   * Parses and checks a body. Throws `VALIDATION_ERROR` for a body that is no import or exceeds a limit, and what the
   * options' functions throw. Stops when `signal` aborts.
   */
  async prepare(
    body: Buffer | AsyncIterable<Buffer>,
    options: PrepareOptions,
    signal?: AbortSignal,
  ): Promise<PreparedImport> {
    if (Buffer.isBuffer(body) && body.length <= PARSED_HERE_BYTES) return prepareHere(body, options);
    const before = this.#turn;
    const turn = Promise.withResolvers<void>();
    this.#turn = turn.promise;
    await before;
    try {
      signal?.throwIfAborted();
      return await this.#prepareApart(Buffer.isBuffer(body) ? [body] : body, options, signal);
    } finally {
      turn.resolve();
    }
  }

  /** Ends the process that is kept. */
  close(): void {
    clearTimeout(this.#keptTimer);
    this.#kept?.kill('SIGKILL');
    this.#kept = undefined;
  }

  async #prepareApart(
    body: AsyncIterable<Buffer> | Iterable<Buffer>,
    options: PrepareOptions,
    signal: AbortSignal | undefined,
  ): Promise<PreparedImport> {
    const child = this.#take();
    let isKept = false;
    try {
      const { outcome, limitTime } = converse(child, options, this.#timeLimitMs, signal);
      // It is awaited below, and may fail before.
      outcome.catch(() => {});
      const bytes = await Promise.race([
        sendBody(child, body, options, this.#takeLimitMs),
        outcome.then(() => 0),
      ]);
      limitTime();
      const prepared = await outcome;
      isKept = bytes <= KEPT_UP_TO_BYTES;
      return prepared;
    } finally {
      if (isKept) this.#keep(child);
      else child.kill('SIGKILL');
    }
  }

  #take(): ChildProcess {
    clearTimeout(this.#keptTimer);
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept?.connected) return kept;
    const child = fork(new URL('./prepare-process.ts', import.meta.url), {
      execArgv: [`--max-old-space-size=${this.#heapMiB}`, '--max-semi-space-size=8'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // A process that has ended is noticed by its exit; what could not be sent to it does not matter.
    child.on('error', () => {});
    child.unref();
    child.channel?.unref();
    return child;
  }

  #keep(child: ChildProcess): void {
    this.#kept = child;
    this.#keptTimer = setTimeout(() => this.close(), KEPT_MS).unref();
  }
}

async function prepareHere(body: Buffer, options: PrepareOptions): Promise<PreparedImport> {
  const { replace, entries } = parseImport(decodeJson(body));
  const preparation = new Preparation({ ...options, replace });
  await preparation.add(entries);
  return preparation.end();
}

/**
 * Resolves with the length of the body once it has been sent; rejects where the process takes nothing. A process that ends
 * meanwhile rejects elsewhere.
 */
async function sendBody(
  child: ChildProcess,
  body: AsyncIterable<Buffer> | Iterable<Buffer>,
  { findKnown, stage }: PrepareOptions,
  takeLimitMs: number,
): Promise<number> {
  let length = 0;
  const post = (message: ToChild) =>
    new Promise<void>((resolve, reject) => {
      const late = new Error(`the process for imports took nothing for ${takeLimitMs} ms`);
      const timer = setTimeout(reject, takeLimitMs, late);
      child.send(message, (error) => {
        clearTimeout(timer);
        if (error === null) resolve();
      });
    });
  for await (const bytes of body) {
    length += bytes.length;
    await post({ type: 'chunk', bytes });
  }
  await post({ type: 'prepare', looksAhead: findKnown !== undefined, stages: stage !== undefined });
  return length;
}

/** Does what the process asks for until it has prepared the import. Once it has the body, `limitTime` is called. */
function converse(
  child: ChildProcess,
  options: PrepareOptions,
  timeLimitMs: number,
  signal: AbortSignal | undefined,
): { outcome: Promise<PreparedImport>; limitTime: () => void } {
  const { promise, resolve, reject } = Promise.withResolvers<PreparedImport>();
  let timer: NodeJS.Timeout | undefined;
  let calls = 0;
  let isOver = false;
  const limitTime = () => {
    clearTimeout(timer);
    timer = isOver || calls > 0 ? undefined : setTimeout(() => reject(tooComplex()), timeLimitMs);
  };
  const abort = () => reject(signal!.reason);
  signal?.addEventListener('abort', abort, { once: true });
  const end = (code: number | null, name: string | null) => reject(explainExit(code, name));
  const receive = (message: FromChild) => {
    if (message.type === 'prepared') resolve(message.prepared);
    else if (message.type === 'refused') reject(new ApiError(message.code, message.message));
    else {
      calls += 1;
      limitTime();
      answer(message, options).then((value) => {
        calls -= 1;
        limitTime();
        const result: ToChild = { type: 'result', id: message.id, value };
        if (child.connected) child.send(result);
      }, reject);
    }
  };
  child.on('error', reject).on('exit', end).on('message', receive);
  const outcome = promise.finally(() => {
    isOver = true;
    clearTimeout(timer);
    child.off('error', reject).off('exit', end).off('message', receive);
    signal?.removeEventListener('abort', abort);
  });
  return { outcome, limitTime };
}

/** V8 ends a process by SIGABRT, and some builds by SIGTRAP or code 133 or 134, when its heap is full. */
function explainExit(code: number | null, signal: string | null): Error {
  const isHeapFull = signal === 'SIGABRT' || signal === 'SIGTRAP' || code === 133 || code === 134;
  return isHeapFull ? tooComplex() : new Error(`the process for imports ended: ${signal ?? code}`);
}

async function answer(
  { name, args }: FromChild & { type: 'call' },
  { findKnown, stage }: PrepareOptions,
): Promise<unknown> {
  if (name === 'findKnown') return findKnown!(args[0] as string[]);
  return name === 'putPiece'
    ? stage!.putPiece(args[0] as number, args[1] as never)
    : stage!.putErrors(args[0] as number, args[1] as string);
}
