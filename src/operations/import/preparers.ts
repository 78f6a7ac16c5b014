import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { Semaphore } from '../../concurrency/semaphore.ts';
import { ApiError, invalid, unavailable } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/resources.ts';
import type { ImportBatch, PreparedImport } from '../../store/imports.ts';
import { prepareEntries, type Stage } from './batches.ts';
import { parseImport } from './body.ts';

/**
 * Prepares imports: parses their bodies and checks their entries. A short body is parsed here. A longer one goes to a
 * process of its own with a heap limit and a time limit, because `JSON.parse` can be neither interrupted nor given less
 * memory: in a worker thread a full heap ends the whole process (decision record 0070).
 */

/** A body of up to this length is parsed in this process: the most expensive JSON of this length takes some 15 ms. */
const PARSED_HERE_BYTES = 262_144;

/** The heap of the process: 100,000 entries in 64 MiB need about two thirds of it. */
const HEAP_MIB = 384;

/**
 * How long the process may work on one batch. Storing a batch does not count: a slow database makes no body too complex. The
 * longest ordinary body takes a few seconds, but the CPU of a shared host may be scarce.
 */
const TIME_LIMIT_MS = 60_000;

/** How long the process may leave a message untaken. A process that is stopped would hold up all imports behind it. */
const TAKE_LIMIT_MS = 60_000;

/** How long a process is kept for the next import, unless a long body has made it large. */
const KEPT_MS = 30_000;
const KEPT_UP_TO_BYTES = 4_194_304;

/** What the process is sent. */
export type ToChild =
  | { type: 'chunk'; bytes: Uint8Array }
  | { type: 'prepare'; stages: boolean }
  | { type: 'staged' };

/** What it sends. It waits for `staged` before it sends another batch. */
export type FromChild =
  | { type: 'batch'; batch: ImportBatch }
  | { type: 'prepared'; prepared: PreparedImport }
  | { type: 'refused'; code: ErrorCode; message: string };

const tooComplex = () => invalid('body: is too complex to be parsed');

interface PreparerLimits {
  heapMiB?: number;
  timeLimitMs?: number;
  takeLimitMs?: number;
}

/** One process at a time prepares long imports; the others wait for their turn. Close it at the end. */
export class Preparers {
  readonly #limits: Required<PreparerLimits>;
  readonly #turns = new Semaphore<string>({
    permits: 1,
    waitMs: 0,
    refusalError: () => unavailable('the server is shutting down'),
  });
  #kept: ChildProcess | undefined;
  #keptTimer: NodeJS.Timeout | undefined;

  constructor(limits: PreparerLimits = {}) {
    this.#limits = { heapMiB: HEAP_MIB, timeLimitMs: TIME_LIMIT_MS, takeLimitMs: TAKE_LIMIT_MS, ...limits };
  }

  /**
   * Parses and checks a body; `stage` stores full batches. Throws `VALIDATION_ERROR` for a body that is no import or exceeds
   * a limit, and what `stage` throws. Stops when `signal` aborts.
   */
  async prepare(
    body: Buffer | AsyncIterable<Buffer>,
    stage?: Stage,
    signal?: AbortSignal,
  ): Promise<PreparedImport> {
    if (Buffer.isBuffer(body) && body.length <= PARSED_HERE_BYTES)
      return prepareEntries(parseImport(body), stage);
    const parts = Buffer.isBuffer(body) ? [body] : body;
    return this.#turns.run('', () => this.#prepareApart(parts, stage, signal));
  }

  /** Ends the process that is kept. */
  close(): void {
    clearTimeout(this.#keptTimer);
    this.#kept?.kill('SIGKILL');
    this.#kept = undefined;
  }

  async #prepareApart(
    body: AsyncIterable<Buffer> | Iterable<Buffer>,
    stage: Stage | undefined,
    signal: AbortSignal | undefined,
  ): Promise<PreparedImport> {
    signal?.throwIfAborted();
    const { takeLimitMs } = this.#limits;
    const child = this.#take();
    const end = () => child.kill('SIGKILL');
    signal?.addEventListener('abort', end, { once: true });
    let isKept = false;
    try {
      const messages = on(child, 'message', { close: ['exit'] }) as AsyncIterable<[FromChild]>;
      let bytes = 0;
      for await (const chunk of body) {
        signal?.throwIfAborted();
        bytes += chunk.length;
        await send(child, { type: 'chunk', bytes: chunk }, takeLimitMs);
      }
      await send(child, { type: 'prepare', stages: stage !== undefined }, takeLimitMs);
      const prepared = await converse(child, messages, stage, this.#limits);
      isKept = bytes <= KEPT_UP_TO_BYTES;
      return prepared;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', end);
      if (isKept) this.#keep(child);
      else end();
    }
  }

  #take(): ChildProcess {
    clearTimeout(this.#keptTimer);
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept?.connected) return kept;
    const child = fork(new URL('./prepare-process.ts', import.meta.url), {
      execArgv: [`--max-old-space-size=${this.#limits.heapMiB}`, '--max-semi-space-size=8'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // A process that has ended is noticed by its exit.
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

/** Sends a message. Rejects if the process does not take it in time. One that has ended is noticed by its exit. */
const send = (child: ChildProcess, message: ToChild, limitMs: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const late = new Error(`the process for imports took nothing for ${limitMs} ms`);
    const timer = setTimeout(reject, limitMs, late);
    child.send(message, () => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Stores the batches that the process sends until it has prepared the import. */
async function converse(
  child: ChildProcess,
  messages: AsyncIterable<[FromChild]>,
  stage: Stage | undefined,
  { timeLimitMs, takeLimitMs }: Required<PreparerLimits>,
): Promise<PreparedImport> {
  let isLate = false;
  const limitTime = () =>
    setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, timeLimitMs);
  let timer = limitTime();
  try {
    for await (const [message] of messages) {
      clearTimeout(timer);
      if (message.type === 'prepared') return message.prepared;
      if (message.type === 'refused') throw new ApiError(message.code, message.message);
      await stage!(message.batch);
      timer = limitTime();
      await send(child, { type: 'staged' }, takeLimitMs);
    }
  } finally {
    clearTimeout(timer);
  }
  throw isLate || isHeapFull(child)
    ? tooComplex()
    : new Error(`the process for imports ended: ${endOf(child)}`);
}

const endOf = ({ signalCode, exitCode }: ChildProcess) => signalCode ?? exitCode;

/** V8 ends a process by SIGABRT, and some builds by SIGTRAP or code 133 or 134, when its heap is full. */
const isHeapFull = (child: ChildProcess): boolean =>
  ['SIGABRT', 'SIGTRAP', 133, 134].includes(endOf(child) ?? '');
