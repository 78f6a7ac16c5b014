import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, Queue, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { ImportQueue } from '../port.ts';
import { type ProcessImportQueue, RunStopped } from '../process/imports.ts';
import { guardAsking } from './asking.ts';
import { NOT_CONNECTED, REPLY_WAIT_MS, type Warn, withDeadline } from './calls.ts';
import { openWorkerClient, type RedisClient } from './clients.ts';
import type { RedisKeys } from './keys.ts';
import type { RedisSide } from './link.ts';

/** How long a worker holds the lock on its job. The worker renews the lock after half of this time. */
const LOCK_MS = 6_000;

/** The interval of BullMQ's checks for stalled jobs, which are jobs in progress whose lock has expired. */
const STALLED_CHECK_MS = 3_000;

/**
 * How often BullMQ gives a job to another worker because its worker died. It is above the number of attempts of an
 * import, because a job may also stall while Redis is unavailable. The row in Postgres counts the attempts.
 */
const MAX_STALLED = 10;

/** The pause after a failed call, before a worker asks for jobs again. */
const RETRY_PAUSE_MS = 500;

/** How long closing a worker may take after its last run. */
const CLOSE_WAIT_MS = 1_000;

/** How many jobs that succeeded and that failed are kept for operators, and for how many seconds. */
const KEPT_DONE = { count: 100, age: 86_400 };
const KEPT_FAILED = { count: 1_000, age: 7 * 86_400 };

/** The reason of a failed job whose import stays queued. The log has the error. The sweep adds another job. */
const ATTEMPT_FAILED = 'ATTEMPT_FAILED';

interface ImportJob {
  id: string;
}

/**
 * Passes each import to one of the workers through BullMQ. A job is one attempt to run an import, and ends with that
 * attempt. The row of the import in Postgres decides whether the attempt may begin. So jobs may be lost, repeated, or
 * run on two workers. While Redis is unavailable, imports run in this process.
 */
export class RedisImportQueue implements ImportQueue {
  readonly #side: RedisSide;
  readonly #local: ProcessImportQueue;
  readonly #warn: Warn;
  /** `#queue` uses the link's client. When the link loses or replaces its client, the queue and worker are replaced. */
  #queue: Queue<ImportJob> | undefined;
  #worker: ImportWorker | undefined;
  /** How many jobs the worker may run at a time. Undefined if this process takes no jobs. */
  #concurrency: number | undefined;

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
    await this.#local.startWorker(concurrency);
    this.#concurrency = concurrency;
    this.#openWorker();
  }

  async stopWorker(graceMs: number): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#concurrency = undefined;
    const lastRun = this.#local.stopWorker(graceMs);
    await worker?.close(lastRun);
    await lastRun;
  }

  /** Stops using the link's client. Does not close the client. */
  async close(): Promise<void> {
    await this.stopWorker(0);
    if (this.#queue) await withDeadline(this.#queue.close(), CLOSE_WAIT_MS).catch(() => {});
  }

  /**
   * Adds a job. BullMQ adds none while an earlier job of the import waits or runs. An ended job does not matter, so the
   * sweep can add an import again.
   */
  async #queueJob(id: string): Promise<void> {
    if (this.#queue === undefined) throw new Error(NOT_CONNECTED);
    await withDeadline(this.#queue.add('import', { id }, { deduplication: { id } }), REPLY_WAIT_MS);
    this.#side.counters.importsQueued += 1;
  }

  /** Replaces the queue and the worker when the link's client changes. Running imports continue. */
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
      defaultJobOptions: { removeOnComplete: KEPT_DONE, removeOnFail: KEPT_FAILED, stackTraceLimit: 0 },
    });
    return queue.on('error', (error) => this.#warnIfCurrent(client, error));
  }

  #openWorker(): void {
    const { client } = this.#side.link;
    if (client === undefined || this.#concurrency === undefined) return;
    this.#worker ??= new ImportWorker(this.#side.keys, this.#local, client, this.#concurrency, (error) =>
      this.#warnIfCurrent(client, error),
    );
  }

  /** Logs an error of the current client. Errors of a lost client are ignored, because the link has logged the loss. */
  #warnIfCurrent(client: RedisClient, error: unknown): void {
    if (client === this.#side.link.client) this.#warn('import queue failed', error);
  }
}

/** A BullMQ worker and its client. */
class ImportWorker {
  readonly #client: RedisClient;
  readonly #worker: Worker<ImportJob>;

  constructor(
    keys: RedisKeys,
    local: ProcessImportQueue,
    client: RedisClient,
    concurrency: number,
    onError: (error: unknown) => void,
  ) {
    this.#client = openWorkerClient(client);
    this.#worker = new Worker<ImportJob>(keys.importsQueue, (job, token) => runJob(local, job, token), {
      connection: this.#client,
      prefix: keys.importsPrefix,
      skipVersionCheck: true,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: MAX_STALLED,
      runRetryDelay: RETRY_PAUSE_MS,
    });
    this.#worker.on('error', (error) => {
      onError(error);
      void this.#pause();
    });
    // If the client never becomes ready, `close` ends it.
    this.#worker.getBackend().blockingClient?.then(guardAsking, () => {});
  }

  /** Takes no jobs for a while. By itself, BullMQ asks again immediately when Redis refuses its script. */
  async #pause(): Promise<void> {
    if (this.#worker.isPaused()) return;
    await this.#worker.pause(true);
    await sleep(RETRY_PAUSE_MS, undefined, { ref: false });
    await this.#worker.resume();
  }

  /**
   * Takes no more jobs. Closes the connections once `lastRun` has resolved and BullMQ has stored how the jobs ended.
   * Without Redis, it cannot store that, and the connections are closed one second after `lastRun`.
   */
  async close(lastRun?: Promise<void>): Promise<void> {
    const closed = this.#worker.close();
    await lastRun;
    await withDeadline(closed, CLOSE_WAIT_MS).catch(() => {});
    // `Worker.close(true)` would only wait for the call above, which does not resolve without Redis.
    await withDeadline(this.#worker.getBackend().close(true), CLOSE_WAIT_MS).catch(() => {});
    this.#client.disconnect();
  }
}

/**
 * Runs the import of a job. The reason of a failed job is a code, so that Redis stores no data of users. If this worker
 * stops before the import has ended, gives the job back to the queue.
 */
async function runJob(
  local: ProcessImportQueue,
  job: Job<ImportJob>,
  token: string | undefined,
): Promise<void> {
  const code = await local.run(job.data.id).catch(async (error: unknown) => {
    if (!(error instanceof RunStopped)) return ATTEMPT_FAILED;
    await job.moveToWait(token);
    throw new WaitingError();
  });
  if (code !== undefined) throw new UnrecoverableError(code);
}
