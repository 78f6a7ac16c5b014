import type { Logger } from 'pino';
import type { Clock, Counters, ImportQueue } from './port.ts';

/**
 * Runs one staged import, or leaves it where another process has it. It must bear being called twice, and at once. When
 * `stop` aborts it gives the import back, and returns as soon as it can.
 */
export type RunImport = (id: string, stop: AbortSignal) => Promise<void>;

/** Imports at a time where no worker was started here: they share the process with requests. */
const DEFAULT_CONCURRENCY = 2;

/** How long imports that are told to stop may take to be given back. */
const GIVE_BACK_WAIT_MS = 1_000;

/** Runs imports by `runImport`; counts them, and logs those that fail. */
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
 * Runs imports in this process, first come, first served, and never one of them twice at a time. What is left at its
 * end stays staged for others.
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

  /** Runs the import as soon as there is a place; false where it is known already, or no more are run. */
  run(id: string): boolean {
    if (this.#stopped || this.#running.has(id) || this.#waiting.has(id)) return false;
    this.#waiting.add(id);
    this.#startNext();
    return true;
  }

  /** Resolves when another import would run at once. */
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

  /** Whether all that runs ends in time. */
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

  /** Never rejects: a failure is logged where it happens, and the sweep of staged imports adds the import again. */
  async #run(id: string): Promise<void> {
    const { signal } = this.#stop;
    await Promise.resolve()
      .then(() => this.#runImport(id, signal))
      .catch(() => {});
    this.#running.delete(id);
    this.#startNext();
  }
}
