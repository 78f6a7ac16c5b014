import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import { ANSWER_WAIT_MS } from './circuit.ts';
import { withDeadline } from './deadline.ts';
import type { RunImport } from './import-runs.ts';
import type { RedisKeys } from './keys.ts';
import type { Counters, ImportQueue } from './port.ts';
import type { ProcessImportQueue } from './process-imports.ts';
import type { RedisClient } from './redis-clients.ts';
import { NOT_CONNECTED } from './redis-errors.ts';

/**
 * A job whose worker vanished is taken over after its lock has expired and a check has seen it: at most
 * 9 + 2.5 seconds. The lock is renewed each 4.5 s, so a worker may block its event loop for that long unharmed.
 */
const LOCK_MS = 9_000;
const STALLED_CHECK_MS = 2_500;

/** After a lost connection the library waits 15 s by default before it looks for jobs again. */
const RETRY_PAUSE_MS = 500;

/** Runs of an import that throws, a second apart; afterwards it is for the sweep of staged imports to add it again. */
const ATTEMPTS = 10;
const ATTEMPT_PAUSE_MS = 1_000;

/** How long closing a connection may take. */
const CLOSE_WAIT_MS = 1_000;

type ImportJob = Job<{ id: string }>;

/** What a shared import queue is made of. */
export interface RedisImportParts {
  keys: RedisKeys;
  /** For adding jobs: fails at once while Redis is away. */
  client: RedisClient;
  /** Opens a client for a worker: waits while Redis is away. */
  openWorkerClient: () => RedisClient;
  /** Takes imports that cannot be queued. */
  local: ProcessImportQueue;
  runImport: RunImport;
  counters: Counters;
  /** Logs a failure, each kind once a minute. */
  complain: (what: string, error: unknown) => void;
  /** Takes the library's errors: lost connections and locks, from which it recovers by itself. */
  noteError: (error: Error) => void;
}

/** Hands imports to the workers of all replicas through BullMQ; runs them here while Redis is away. */
export class RedisImportQueue implements ImportQueue {
  readonly #parts: RedisImportParts;
  readonly #queue: Queue;
  #worker: ImportWorker | undefined;

  constructor(parts: RedisImportParts) {
    this.#parts = parts;
    this.#queue = new Queue(parts.keys.importsQueue, {
      connection: parts.client,
      prefix: parts.keys.importsPrefix,
      skipVersionCheck: true,
      streams: { events: { maxLen: 100 } },
      defaultJobOptions: {
        attempts: ATTEMPTS,
        backoff: { type: 'fixed', delay: ATTEMPT_PAUSE_MS },
        removeOnComplete: true,
        removeOnFail: true,
      },
    });
    this.#queue.on('error', parts.noteError);
  }

  async add(id: string): Promise<void> {
    const { client, counters, complain, local } = this.#parts;
    try {
      if (client.status !== 'ready') throw new Error(NOT_CONNECTED);
      await withDeadline(this.#queue.add('import', { id }, { jobId: `imp-${id}` }), ANSWER_WAIT_MS);
      counters.importsQueued += 1;
    } catch (error) {
      complain('import cannot be queued, it runs in this process', error);
      await local.add(id);
    }
  }

  async startWorker(concurrency: number): Promise<void> {
    this.#worker ??= new ImportWorker(this.#parts, concurrency);
    await this.#parts.local.startWorker(concurrency);
  }

  async stopWorker(graceMs: number): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await Promise.all([worker?.stop(graceMs), this.#parts.local.stopWorker(graceMs)]);
  }

  /** Ends the producer's side; its client is closed by who opened it. */
  async close(): Promise<void> {
    await this.stopWorker(0);
    await withDeadline(this.#queue.close(), CLOSE_WAIT_MS).catch(() => {});
  }
}

/** One process's worker, with connections of its own. */
class ImportWorker {
  readonly #parts: RedisImportParts;
  readonly #worker: Worker;
  /** The worker's client, and the one that the library makes of it for blocking calls. */
  readonly #clients: RedisClient[] = [];
  readonly #active = new Map<string, { job: ImportJob; token: string; ended: Promise<unknown> }>();
  #stopping = false;
  readonly #stop = new AbortController();

  constructor(parts: RedisImportParts, concurrency: number) {
    this.#parts = parts;
    this.#worker = new Worker(parts.keys.importsQueue, (job, token) => this.#process(job, token!), {
      connection: this.#openClient(),
      prefix: parts.keys.importsPrefix,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1_000_000,
      runRetryDelay: RETRY_PAUSE_MS,
    });
    this.#worker.on('error', parts.noteError);
  }

  /** Takes no more jobs, waits for those at work, gives back what is left, and lets go of Redis in any case. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await this.#worker.pause(true);
    const ended = Promise.all([...this.#active.values()].map((run) => run.ended));
    const finished = await withDeadline(ended, graceMs).then(
      () => true,
      () => false,
    );
    if (!finished) {
      this.#stop.abort();
      await withDeadline(Promise.all([ended, this.#giveBack()]), CLOSE_WAIT_MS).catch(() => {});
    }
    await withDeadline(this.#worker.close(!finished), CLOSE_WAIT_MS).catch(() => {});
    for (const client of this.#clients) client.disconnect();
  }

  async #process(job: ImportJob, token: string): Promise<void> {
    if (this.#stopping) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const run = this.#parts.runImport(job.data.id, this.#stop.signal);
    const ended = run.catch(() => {});
    this.#active.set(token, { job, token, ended });
    try {
      await run;
    } finally {
      this.#active.delete(token);
    }
  }

  /** Jobs at work go back to the queue at once, instead of after their lock has expired. */
  async #giveBack(): Promise<void> {
    await Promise.allSettled([...this.#active.values()].map(({ job, token }) => job.moveToWait(token)));
  }

  #openClient(): RedisClient {
    const client = this.#parts.openWorkerClient();
    this.#adopt(client);
    const duplicate = client.duplicate.bind(client) as (...options: unknown[]) => RedisClient;
    client.duplicate = ((...options: unknown[]) => this.#adopt(duplicate(...options))) as never;
    return client;
  }

  #adopt(client: RedisClient): RedisClient {
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }
}
