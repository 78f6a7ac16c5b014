import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import type { RedisKeys } from './keys.ts';
import type { ImportQueue } from './port.ts';
import type { ProcessImportQueue } from './process-imports.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, type Warn, withDeadline } from './redis-calls.ts';
import { duplicateForBlocking, type RedisClient } from './redis-clients.ts';
import type { RedisSide } from './redis-link.ts';

/**
 * The interval of BullMQ's checks for stalled jobs. If a process dies between taking a job and removing it, another
 * process takes the job after two checks.
 */
const STALLED_CHECK_MS = 3_000;

/** The pause after a failed call, before a worker asks for jobs again. */
const RETRY_PAUSE_MS = 500;

/** How long closing the queue or a worker may take. */
const CLOSE_WAIT_MS = 1_000;

interface ImportJob {
  id: string;
}

/** The name under which this process takes and removes jobs. BullMQ requires one, and calls it a token. */
const TAKER = 'worker';

/**
 * Passes each import to one of the workers through BullMQ. While Redis is unavailable, imports run in this process.
 * These are the steps of an import:
 *
 * 1. `add` puts a job with the import's id into the queue.
 * 2. One worker takes the job, passes the id to `local`, and immediately removes the job.
 * 3. `local` runs the import. From then on, the import's lease in Postgres names the worker. If the worker dies, the
 *    sweep of staged imports adds the import again.
 */
export class RedisImportQueue implements ImportQueue {
  readonly #side: RedisSide;
  readonly #local: ProcessImportQueue;
  readonly #warn: Warn;
  /** `#queue` and `#worker` use the link's client. When the link loses or replaces its client, they are closed. */
  #queue: Queue<ImportJob> | undefined;
  #worker: ImportWorker | undefined;
  #takesJobs = false;

  /** `local` runs the imports of this process: those from the queue, and those that cannot be queued. */
  constructor(side: RedisSide, local: ProcessImportQueue, warn: Warn) {
    this.#side = side;
    this.#local = local;
    this.#warn = warn;
    side.link.onClient((client) => this.#replaceClient(client));
  }

  async add(id: string): Promise<void> {
    try {
      await this.#queueJob(id);
    } catch (error) {
      this.#warn('import cannot be queued, it runs in this process', error);
      await this.#local.add(id);
    }
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#takesJobs = true;
    await this.#local.startWorker(concurrency);
    this.#openWorker();
  }

  async stopWorker(graceMs: number): Promise<string[]> {
    this.#takesJobs = false;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.close();
    const notBegun = worker?.takenTooLate ?? [];
    const unfinished = [...(await this.#local.stopWorker(graceMs)), ...notBegun];
    // If an import cannot be queued here, the sweep of staged imports queues it later.
    await Promise.allSettled(unfinished.map((id) => this.#queueJob(id)));
    return unfinished;
  }

  /** Stops using the link's client. Does not close the client. */
  async close(): Promise<void> {
    await this.stopWorker(0);
    if (this.#queue) await withDeadline(this.#queue.close(), CLOSE_WAIT_MS).catch(() => {});
  }

  async #queueJob(id: string): Promise<void> {
    if (this.#queue === undefined) throw new Error(NOT_CONNECTED);
    // BullMQ adds nothing if the queue already has a job with this `jobId`.
    await withDeadline(this.#queue.add('import', { id }, { jobId: `imp-${id}` }), REPLY_WAIT_MS);
    this.#side.counters.importsQueued += 1;
  }

  /** Replaces the queue and the worker when the link's client changes. */
  #replaceClient(client: RedisClient | undefined): void {
    void this.#worker?.close();
    this.#worker = undefined;
    this.#queue?.close().catch(() => {});
    this.#queue = client && this.#openQueue(client);
    this.#openWorker();
  }

  #openQueue(client: RedisClient): Queue<ImportJob> {
    const queue = new Queue<ImportJob>(this.#side.keys.importsQueue, {
      connection: client,
      prefix: this.#side.keys.importsPrefix,
      skipVersionCheck: true,
      streams: { events: { maxLen: 100 } },
      defaultJobOptions: { removeOnComplete: true },
    });
    return queue.on('error', (error) => this.#warnIfCurrent(client, error));
  }

  #openWorker(): void {
    const { client } = this.#side.link;
    if (client === undefined || !this.#takesJobs) return;
    this.#worker ??= new ImportWorker(this.#side.keys, this.#local, client, (error) =>
      this.#warnIfCurrent(client, error),
    );
  }

  /** Logs an error of the current client. Errors of a lost client are ignored, because the link has logged the loss. */
  #warnIfCurrent(client: RedisClient, error: unknown): void {
    if (client === this.#side.link.client) this.#warn('import queue failed', error);
  }
}

/** Takes jobs from the queue while `local` can run their imports immediately. Waits for jobs on its own connection. */
class ImportWorker {
  readonly #local: ProcessImportQueue;
  readonly #onError: (error: unknown) => void;
  readonly #worker: Worker<ImportJob>;
  readonly #blocking: RedisClient;
  readonly #loopEnd: Promise<void>;
  #isClosed = false;
  /** The ids of imports whose jobs were taken after the call of `close`. */
  readonly takenTooLate: string[] = [];

  constructor(
    keys: RedisKeys,
    local: ProcessImportQueue,
    client: RedisClient,
    onError: (error: unknown) => void,
  ) {
    this.#local = local;
    this.#onError = onError;
    this.#blocking = duplicateForBlocking(client);
    this.#worker = openWorker(client, this.#blocking, (connection) => {
      return new Worker<ImportJob>(keys.importsQueue, null, {
        connection,
        prefix: keys.importsPrefix,
        skipVersionCheck: true,
        lockDuration: STALLED_CHECK_MS,
        stalledInterval: STALLED_CHECK_MS,
      });
    });
    this.#worker.on('error', onError);
    void this.#worker.startStalledCheckTimer();
    this.#loopEnd = this.#takeJobs();
  }

  /** Stops taking jobs, and closes the connection on which it waited. Resolves after `CLOSE_WAIT_MS` at the latest. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#blocking.disconnect();
    const ends = Promise.all([this.#worker.close(true), this.#loopEnd]);
    await withDeadline(ends, CLOSE_WAIT_MS).catch(() => {});
  }

  async #takeJobs(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#local.untilPlace();
        const job = await this.#worker.getNextJob(TAKER);
        if (job === undefined) continue;
        const { id } = job.data;
        if (this.#isClosed) this.takenTooLate.push(id);
        else this.#local.run(id);
        await job.moveToCompleted(undefined, TAKER, false);
      } catch (error) {
        if (this.#isClosed) return;
        this.#onError(error);
        await sleep(RETRY_PAUSE_MS, undefined, { ref: false });
      }
    }
  }
}

/**
 * Opens a BullMQ worker that waits for jobs on the connection `blocking`. BullMQ 6.7 has no option for this. The
 * constructor of `Worker` calls `client.duplicate()` once, to get that connection. So while the constructor runs,
 * `client.duplicate` is replaced by a function that returns `blocking`.
 */
function openWorker(
  client: RedisClient,
  blocking: RedisClient,
  open: (client: RedisClient) => Worker<ImportJob>,
): Worker<ImportJob> {
  Object.defineProperty(client, 'duplicate', { value: () => blocking, configurable: true });
  try {
    return open(client);
  } finally {
    Reflect.deleteProperty(client, 'duplicate');
  }
}
