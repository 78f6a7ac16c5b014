import type { RunImport } from './import-runs.ts';
import type { Clock, Counters, ImportQueue } from './port.ts';

/** Imports at a time where no worker was started here: they share the process with requests. */
const DEFAULT_CONCURRENCY = 2;

/** How long imports that are told to stop may take to be given back. */
const GIVE_BACK_WAIT_MS = 1_000;

/** Runs imports in this process, first come, first served. What is left at its end stays staged for others. */
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
    if (this.#stopped || this.#running.has(id)) return;
    this.#waiting.add(id);
    this.#startNext();
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#concurrency = concurrency;
    this.#stopped = false;
    this.#stop = new AbortController();
    this.#startNext();
  }

  async stopWorker(graceMs: number): Promise<void> {
    this.#stopped = true;
    this.#waiting.clear();
    if (await this.#haveEnded(graceMs)) return;
    this.#stop.abort();
    await this.#haveEnded(GIVE_BACK_WAIT_MS);
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
      this.#counters.importsInProcess += 1;
      this.#running.set(id, this.#run(id));
    }
  }

  async #run(id: string): Promise<void> {
    // A failure was logged where it happened; the sweep of staged imports adds it again.
    const { signal } = this.#stop;
    await Promise.resolve()
      .then(() => this.#runImport(id, signal))
      .catch(() => {});
    this.#running.delete(id);
    this.#startNext();
  }
}
