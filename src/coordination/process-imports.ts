import type { Logger } from 'pino';
import type { Clock, Counters, ImportQueue } from './port.ts';

/**
 * Runs one staged import. Does nothing if another process is running it, so two calls for the same import do no harm.
 * When `stop` aborts, the run ends as soon as it can, so that another process can run the import.
 */
export type RunImport = (id: string, stop: AbortSignal) => Promise<void>;

/**
 * How many imports run at a time in a process that has not called `startWorker`. Such a process mainly serves
 * requests.
 */
const DEFAULT_CONCURRENCY = 2;

/** How long `stopWorker` waits for the imports that it has told to stop. */
const STOP_WAIT_MS = 1_000;

/** Returns a function that calls `runImport`, counts runs that succeed and runs that fail, and logs failures. */
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
 * Runs imports in this process, in the order of their arrival. Never runs an import twice at the same time. When the
 * process ends, unfinished imports remain in Postgres, and other processes run them.
 */
export class ProcessImportQueue implements ImportQueue {
  readonly #runImport: RunImport;
  readonly #clock: Clock;
  readonly #counters: Counters;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  #concurrency = DEFAULT_CONCURRENCY;
  #stopped = false;
  #stopController = new AbortController();

  constructor(runImport: RunImport, clock: Clock, counters: Counters) {
    this.#runImport = runImport;
    this.#clock = clock;
    this.#counters = counters;
  }

  async add(id: string): Promise<void> {
    if (this.run(id)) this.#counters.importsInProcess += 1;
  }

  /**
   * Runs the import as soon as fewer than `#concurrency` imports are running. Returns false if the import is already
   * waiting or running, or if the worker has stopped.
   */
  run(id: string): boolean {
    if (this.#stopped || this.#running.has(id) || this.#waiting.has(id)) return false;
    this.#waiting.add(id);
    this.#startNext();
    return true;
  }

  /** Resolves when fewer than `#concurrency` imports are running. */
  async untilPlace(): Promise<void> {
    while (this.#running.size >= this.#concurrency) await Promise.race(this.#running.values());
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#concurrency = concurrency;
    this.#stopped = false;
    this.#stopController = new AbortController();
    this.#startNext();
  }

  async stopWorker(graceMs: number): Promise<string[]> {
    this.#stopped = true;
    const unfinished = [...this.#waiting];
    this.#waiting.clear();
    if (await this.#waitForRunning(graceMs)) return unfinished;
    unfinished.push(...this.#running.keys());
    this.#stopController.abort();
    await this.#waitForRunning(STOP_WAIT_MS);
    return unfinished;
  }

  /** Waits up to `waitMs` for the running imports to end. Returns whether all have ended. */
  async #waitForRunning(waitMs: number): Promise<boolean> {
    const timeOver = Promise.withResolvers<boolean>();
    const cancel = this.#clock.after(waitMs, () => timeOver.resolve(false));
    const allEnded = Promise.all(this.#running.values()).then(() => true);
    const hasEndedInTime = await Promise.race([allEnded, timeOver.promise]);
    cancel();
    return hasEndedInTime;
  }

  #startNext(): void {
    for (const id of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return;
      this.#waiting.delete(id);
      this.#running.set(id, this.#runNow(id));
    }
  }

  /** Never rejects. `runImport` logs a failure, and the sweep of staged imports adds the import again. */
  async #runNow(id: string): Promise<void> {
    const { signal } = this.#stopController;
    await Promise.resolve()
      .then(() => this.#runImport(id, signal))
      .catch(() => {});
    this.#running.delete(id);
    this.#startNext();
  }
}
