import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { readFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { ApiError, invalid, unavailable } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import { Semaphore } from '../flow/semaphore.ts';
import type { ImportBatch, PreparedImport } from '../store/imports.ts';
import { prepareEntries, type Stage } from './batches.ts';
import { parseImport } from './body.ts';

/**
 * Prepares imports: parses their bodies and checks their entries. A short body is parsed in this process. A longer body
 * is parsed in a child process with a heap limit and a time limit, because `JSON.parse` has neither. A worker thread is
 * not enough: if its heap is full, the whole process ends (docs/decisions/0070-imports-parsed-by-a-process.md).
 */

/** A body of up to this length is parsed in this process, which blocks the event loop for at most about 15 ms. */
const PARSED_HERE_BYTES = 262_144;

/** The heap of the child process. An import of 100,000 entries in 64 MiB needs about two thirds of it. */
const HEAP_MIB = 384;

/**
 * How long the child process may work on one batch. The longest ordinary body takes a few seconds of CPU time in all.
 * On a busy host, the child may wait for a core most of the time, because its priority is low. It then gets more time
 * (see `watchWork`). The time to store a batch does not count, because it depends on the database and not on the body.
 */
const TIME_LIMIT_MS = 60_000;

/** How long the child process may take to accept a message. Without a limit, a stopped process would block imports. */
const TAKE_LIMIT_MS = 60_000;

/**
 * How long the child process is kept for the next import. A new process has to start first, and is slow until V8 has
 * compiled its code.
 */
const KEPT_MS = 30_000;

/**
 * The niceness of the child process. If this process has a higher niceness, the child keeps the niceness of this
 * process, because only a superuser may decrease a niceness.
 */
const CHILD_PRIORITY = constants.priority.PRIORITY_BELOW_NORMAL;

/** Messages to the child process. `stages` says whether the child sends full batches. */
export type ToChild =
  | { type: 'chunk'; bytes: Uint8Array }
  | { type: 'prepare'; stages: boolean }
  | { type: 'staged' };

/** Messages from the child process. The child waits for `staged` before it sends the next batch or `prepared`. */
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

/**
 * Prepares imports. Long imports are prepared one at a time, in the order of their arrival. Call `close` at the end.
 */
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
   * Parses and checks a body, and passes full batches to `stage`. Throws `VALIDATION_ERROR` if the body is not an
   * import or exceeds a limit. Also throws the errors of `stage`. Stops when `signal` aborts.
   */
  async prepare(
    body: Buffer | AsyncIterable<Buffer>,
    stage?: Stage,
    signal?: AbortSignal,
  ): Promise<PreparedImport> {
    if (Buffer.isBuffer(body) && body.length <= PARSED_HERE_BYTES)
      return prepareEntries(parseImport(body), stage);
    const chunks = Buffer.isBuffer(body) ? [body] : body;
    return this.#turns.run('', () => this.#prepareInChild(chunks, stage, signal));
  }

  /** Ends the child process, if one is kept. */
  close(): void {
    clearTimeout(this.#keptTimer);
    this.#kept?.kill('SIGKILL');
    this.#kept = undefined;
  }

  async #prepareInChild(
    body: AsyncIterable<Buffer> | Iterable<Buffer>,
    stage: Stage | undefined,
    signal: AbortSignal | undefined,
  ): Promise<PreparedImport> {
    signal?.throwIfAborted();
    const { takeLimitMs } = this.#limits;
    const child = this.#takeChild();
    const endChild = () => child.kill('SIGKILL');
    signal?.addEventListener('abort', endChild, { once: true });
    let mayKeep = false;
    try {
      const messages = on(child, 'message', { close: ['exit'] }) as AsyncIterable<[FromChild]>;
      for await (const chunk of body) {
        signal?.throwIfAborted();
        await send(child, { type: 'chunk', bytes: chunk }, takeLimitMs);
      }
      await send(child, { type: 'prepare', stages: stage !== undefined }, takeLimitMs);
      const end = await receiveBatches(child, messages, stage, this.#limits);
      mayKeep = true;
      if (end.type === 'refused') throw new ApiError(end.code, end.message);
      return end.prepared;
    } catch (error) {
      // If `signal` has ended the child, the reason of `signal` explains the error.
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', endChild);
      if (mayKeep) this.#keepChild(child);
      else endChild();
    }
  }

  /** Returns the kept child process, or starts one. */
  #takeChild(): ChildProcess {
    clearTimeout(this.#keptTimer);
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept?.connected) return kept;
    const child = fork(new URL('./prepare-process.ts', import.meta.url), {
      execArgv: [`--max-old-space-size=${this.#limits.heapMiB}`, '--max-semi-space-size=8'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // With a lower priority, long imports delay other requests less. The child's threads inherit the priority, so it is
    // set before they start.
    if (child.pid !== undefined) setPriority(child.pid, Math.max(CHILD_PRIORITY, getPriority()));
    // If the child fails during an import, the iterator of its messages fails or ends. So the event can be ignored.
    child.on('error', () => {});
    child.unref();
    child.channel?.unref();
    return child;
  }

  #keepChild(child: ChildProcess): void {
    this.#kept = child;
    this.#keptTimer = setTimeout(() => this.close(), KEPT_MS).unref();
  }
}

/**
 * Sends a message to the child process. Rejects if the process does not accept it in time. Resolves if the process has
 * ended, because `receiveBatches` notices that.
 */
const send = (child: ChildProcess, message: ToChild, limitMs: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const late = new Error(`the process for imports took nothing for ${limitMs} ms`);
    const timer = setTimeout(reject, limitMs, late);
    child.send(message, () => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Stores the batches that the child process sends. Returns the last message of the child. */
async function receiveBatches(
  child: ChildProcess,
  messages: AsyncIterable<[FromChild]>,
  stage: Stage | undefined,
  { timeLimitMs, takeLimitMs }: Required<PreparerLimits>,
): Promise<Exclude<FromChild, { type: 'batch' }>> {
  let isLate = false;
  const endChild = () => {
    isLate = true;
    child.kill('SIGKILL');
  };
  let stopWatching = watchWork(child, timeLimitMs, endChild);
  try {
    for await (const [message] of messages) {
      stopWatching();
      if (message.type !== 'batch') return message;
      await stage!(message.batch);
      stopWatching = watchWork(child, timeLimitMs, endChild);
      await send(child, { type: 'staged' }, takeLimitMs);
    }
  } finally {
    stopWatching();
  }
  throw isLate || isHeapFull(child)
    ? tooComplex()
    : new Error(`the process for imports ended: ${endOf(child)}`);
}

/**
 * Calls `end` when a process has worked for too long. Checks the process every `limitMs`. It may go on if it has used
 * CPU time since the last check, but less than half of `limitMs` in all. Call the result to stop watching.
 */
function watchWork({ pid }: ChildProcess, limitMs: number, end: () => void): () => void {
  const beganAtMs = cpuTimeMs(pid);
  let usedMs = 0;
  const check = () => {
    const usedBeforeMs = usedMs;
    usedMs = cpuTimeMs(pid) - beganAtMs;
    if (usedMs > usedBeforeMs && usedMs < limitMs / 2) timer = setTimeout(check, limitMs);
    else end();
  };
  let timer = setTimeout(check, limitMs);
  return () => clearTimeout(timer);
}

/** The CPU time that a process has used. `NaN` if the process has ended, or if the system has no `/proc`. */
function cpuTimeMs(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may contain spaces. The times are in hundredths of a second.
    const [, utime, stime] = /\) (?:\S+ ){11}(\d+) (\d+) /.exec(stat)!;
    return 10 * (Number(utime) + Number(stime));
  } catch {
    return Number.NaN;
  }
}

/** Returns the signal that ended a process, or its exit code. */
const endOf = ({ signalCode, exitCode }: ChildProcess) => signalCode ?? exitCode;

/**
 * Whether the process ended because its heap was full. V8 then ends it with SIGABRT. Some builds of V8 use SIGTRAP or
 * the exit codes 133 and 134 instead.
 */
const isHeapFull = (child: ChildProcess): boolean =>
  ['SIGABRT', 'SIGTRAP', 133, 134].includes(endOf(child) ?? '');
