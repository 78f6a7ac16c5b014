import type { Logger } from 'pino';
import type { Clock, Counters, ImportQueue } from './port.ts';

/**
 * Runs one staged import, or does nothing if another process is running it. It may be called twice for the same import,
 * even at the same time. When `stop` aborts, it returns the import to the queue as soon as it can.
 */
export type RunImport = (id: string, stop: AbortSignal) => Promise<void>;

/** How many imports run at a time if this process has no worker. They share the process with requests. */
const DEFAULT_CONCURRENCY = 2;

/** How long imports that were told to stop may take to return to the queue. */
const GIVE_BACK_WAIT_MS = 1_000;

/** Runs imports with `runImport`, counts them, and logs failures. */
export function watchRuns(runImport: RunImport, log: Logger, counters: Counters): RunImport {
  return async (id, stop) => {
    try {
      await runImport(id, stop);
      counters.importsDone += 1;
    } catch (error) {
      counters.importsFailed += 1;
      log.error({ importId: id, err: error }, 'import failed; it stays staged and is tried again');
      throw error;
    }
  };
}

/**
 * Runs imports in this process in the order of their arrival, and never the same import twice at a time. When the
 * process ends, unfinished imports stay staged for other processes.
 */
export class ProcessImportQueue implements ImportQueue {
  readonly #runImport: RunImport;
  readonly #clock: Clock;
  readonly #counters: Counters;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  #concurrency = DEFAULT_CONCURRENCY;
  #stopped = false;
  #stop = new AbortController();

  constructor(runImport: RunImport, clock: Clock, counters: Counters) {
    this.#runImport = runImport;
    this.#clock = clock;
    this.#counters = counters;
  }

  async add(id: string): Promise<void> {
    if (this.run(id)) this.#counters.importsInProcess += 1;
  }

  /**
   * Runs the import as soon as a place is free. Returns false if the import is already waiting or running, or if the
   * worker has stopped.
   */
  run(id: string): boolean {
    if (this.#stopped || this.#running.has(id) || this.#waiting.has(id)) return false;
    this.#waiting.add(id);
    this.#startNext();
    return true;
  }

  /** Resolves when a place is free. */
  async untilPlace(): Promise<void> {
    while (this.#running.size >= this.#concurrency) await Promise.race(this.#running.values());
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#concurrency = concurrency;
    this.#stopped = false;
    this.#stop = new AbortController();
    this.#startNext();
  }

  async stopWorker(graceMs: number): Promise<string[]> {
    this.#stopped = true;
    const left = [...this.#waiting];
    this.#waiting.clear();
    if (await this.#haveEnded(graceMs)) return left;
    left.push(...this.#running.keys());
    this.#stop.abort();
    await this.#haveEnded(GIVE_BACK_WAIT_MS);
    return left;
  }

  /** Whether all running imports end in time. */
  async #haveEnded(waitMs: number): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const cancel = this.#clock.after(waitMs, () => late.resolve(false));
    const ended = Promise.all(this.#running.values()).then(() => true);
    const inTime = await Promise.race([ended, late.promise]);
    cancel();
    return inTime;
  }

  #startNext(): void {
    for (const id of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return;
      this.#waiting.delete(id);
      this.#running.set(id, this.#run(id));
    }
  }

  /** Never rejects. `runImport` logs a failure, and the sweep of staged imports adds the import again. */
  async #run(id: string): Promise<void> {
    const { signal } = this.#stop;
    await Promise.resolve()
      .then(() => this.#runImport(id, signal))
      .catch(() => {});
    this.#running.delete(id);
    this.#startNext();
  }
}
