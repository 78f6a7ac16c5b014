import type { Logger } from 'pino';
import type { Clock, Counters, ImportQueue } from '../port.ts';

/**
 * Runs one staged import. Does nothing if another process is running it, so two calls for the same import do no harm.
 * Resolves with the code of the error with which this run ended the import, if it did. When `stop` aborts, the run ends
 * as soon as it can, so that another process can run the import.
 */
export type RunImport = (id: string, stop: AbortSignal) => Promise<string | undefined>;

/** Thrown when a run is stopped before its import has ended. Another worker must run the import. */
export class RunStopped extends Error {
  override readonly name = 'RunStopped';
}

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
      const code = await runImport(id, stop);
      counters.importsDone += 1;
      return code;
    } catch (error) {
      counters.importsFailed += 1;
      log.error({ importId: id, err: error }, 'import failed; it stays staged and is tried again');
      throw error;
    }
  };
}

/** A run that waits for its turn or has begun. */
type Run = PromiseWithResolvers<string | undefined>;

/**
 * Runs imports in this process, in the order of their arrival. Never runs an import twice at the same time. When the
 * process ends, unfinished imports remain in Postgres, and other processes run them.
 */
export class ProcessImportQueue implements ImportQueue {
  readonly #runImport: RunImport;
  readonly #clock: Clock;
  readonly #counters: Counters;
  readonly #waiting = new Map<string, Run>();
  readonly #running = new Map<string, Run>();
  #concurrency = DEFAULT_CONCURRENCY;
  #stopped = false;
  #stopController = new AbortController();

  constructor(runImport: RunImport, clock: Clock, counters: Counters) {
    this.#runImport = runImport;
    this.#clock = clock;
    this.#counters = counters;
  }

  async add(id: string): Promise<void> {
    if (this.#stopped || this.#find(id)) return;
    this.#counters.importsInProcess += 1;
    // `runImport` logs a failure, and the sweep of staged imports adds the import again.
    this.run(id).catch(() => {});
  }

  /**
   * Runs the import as soon as fewer than `#concurrency` imports are running. If the import is already waiting or running
   * here, the call waits for that run. Settles like `RunImport`, or rejects with `RunStopped`.
   */
  async run(id: string): Promise<string | undefined> {
    if (this.#stopped) throw new RunStopped();
    const run = this.#find(id) ?? Promise.withResolvers();
    if (!this.#running.has(id)) this.#waiting.set(id, run);
    this.#startNext();
    return run.promise;
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#concurrency = concurrency;
    this.#stopped = false;
    this.#stopController = new AbortController();
    this.#startNext();
  }

  async stopWorker(graceMs: number): Promise<void> {
    this.#stopped = true;
    for (const run of this.#waiting.values()) run.reject(new RunStopped());
    this.#waiting.clear();
    if (await this.#waitForRunning(graceMs)) return;
    this.#stopController.abort();
    await this.#waitForRunning(STOP_WAIT_MS);
    for (const run of this.#running.values()) run.reject(new RunStopped());
  }

  #find(id: string): Run | undefined {
    return this.#running.get(id) ?? this.#waiting.get(id);
  }

  /** Waits up to `waitMs` for the running imports to end. Returns whether all have ended. */
  async #waitForRunning(waitMs: number): Promise<boolean> {
    const timeOver = Promise.withResolvers<boolean>();
    const cancel = this.#clock.after(waitMs, () => timeOver.resolve(false));
    const runs = [...this.#running.values()].map(({ promise }) => promise);
    const allEnded = Promise.allSettled(runs).then(() => true);
    const hasEndedInTime = await Promise.race([allEnded, timeOver.promise]);
    cancel();
    return hasEndedInTime;
  }

  #startNext(): void {
    for (const [id, run] of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return;
      this.#waiting.delete(id);
      this.#running.set(id, run);
      void this.#runNow(id, run);
    }
  }

  async #runNow(id: string, run: Run): Promise<void> {
    const { signal } = this.#stopController;
    try {
      const code = await this.#runImport(id, signal);
      if (signal.aborted) throw new RunStopped();
      run.resolve(code);
    } catch (error) {
      run.reject(error);
    }
    this.#running.delete(id);
    this.#startNext();
  }
}
