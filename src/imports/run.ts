import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { importChannel, notifyPolls } from '../coordination/channels.ts';
import { ApiError } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import { resumeTrace } from '../observability/tracing.ts';
import type { Database } from '../store/driver/database.ts';
import { DatabaseUnavailable } from '../store/driver/errors.ts';
import {
  type Claim,
  claimImport,
  LEASE_MS,
  LEASE_RENEWAL_MS,
  refuseImport,
  releaseLease,
  renewLease,
  stageBatch,
} from '../store/import-leases.ts';
import { finishImport, type ImportBatch, type PreparedImport } from '../store/imports.ts';
import { type ImportKey, jobIdOf, type Lease, parseJobId, readChunks } from '../store/staged-imports.ts';
import { trashLimitOf } from '../store/trash.ts';
import { freeBytes } from './body.ts';
import type { ImportContext } from './context.ts';

/** Runs staged imports on a worker: reads the stored body, imports it, and stores the result. */

/** The pause between attempts to release a lease. */
const RELEASE_INTERVAL_MS = 1_000;

/**
 * Runs a staged import, unless another worker runs it. Parses its body, checks its entries, and writes them and the
 * result in one transaction. An import happens at most once, and is given up after three failed attempts
 * (docs/contract.md, decisions 21 and 34). Resolves with the code of the error with which this run ended the import, if
 * it did. If the database cannot be reached, rejects and leaves the import queued. When `stop` aborts, releases the
 * import, so that another worker can run it.
 */
export async function runImport(
  context: ImportContext,
  jobId: string,
  stop: AbortSignal,
): Promise<ErrorCode | undefined> {
  const staged = parseJobId(jobId);
  if (staged === undefined) return undefined;
  const lease: Lease = { ...staged, leaseId: randomUUID() };
  const claim = await claimImport(context.database, lease);
  let code: ErrorCode | undefined;
  if (claim?.outcome === 'claimed') code = await runClaimed(context, lease, claim, stop);
  if (claim?.outcome === 'given up') code = noteGivenUp(context, lease, claim);
  // Notify even if an earlier worker ended the import, because that worker may have died before it notified.
  if (claim !== undefined && claim.outcome !== 'queued') notifyWaiters(context, lease);
  return code;
}

function notifyWaiters({ coordination: { notifier } }: ImportContext, staged: ImportKey): void {
  notifier.notify(importChannel(jobIdOf(staged)));
  notifyPolls(notifier, staged.userId);
}

/** Logs and counts an import that was given up. Returns the code of the error that its request gets. */
function noteGivenUp({ log, metrics }: ImportContext, { userId, id }: Lease, { attempts }: Claim): ErrorCode {
  log.error({ importId: id, user: userId, attempts }, 'import given up: all its attempts failed');
  metrics.importEnded('given_up', 0);
  return 'UNAVAILABLE';
}

async function runClaimed(
  context: ImportContext,
  lease: Lease,
  { traceParent }: Claim,
  stop: AbortSignal,
): Promise<ErrorCode | undefined> {
  const { clock } = context.coordination;
  const begunAt = clock.now();
  const lost = new AbortController();
  const cancelRenewal = keepLease(context, lease, lost);
  const signal = AbortSignal.any([stop, lost.signal]);
  try {
    const end = await Promise.race([
      resumeTrace(traceParent, () => prepareAndWrite(context, lease, signal)),
      rejectWhenAborted(signal),
    ]);
    if (end !== undefined) noteEnd(context, lease, end, clock.now() - begunAt, traceParent);
    return end?.state === 'failed' ? end.error : undefined;
  } catch (error) {
    // If the worker lost its lease, `release` changes nothing, and the attempt counts.
    await release(context, lease, signal.aborted || isFaultOfDatabase(error));
    if (!signal.aborted) throw error;
    return undefined;
  } finally {
    cancelRenewal();
  }
}

/**
 * Returns whether an attempt failed because the database was unavailable. Such an attempt does not count. An attempt
 * whose statement took too long does count. Otherwise an import that always takes too long would be repeated for a day,
 * and would hold the lock on the account each time.
 */
const isFaultOfDatabase = (error: unknown): boolean =>
  error instanceof DatabaseUnavailable && error.reason !== 'cancelled' && error.reason !== 'deadline';

/**
 * Renews a lease regularly until the returned function is called. Aborts `lost` if the worker no longer has the lease,
 * because another worker may then run the import.
 */
function keepLease({ coordination, database }: ImportContext, lease: Lease, lost: AbortController) {
  let cancel: () => void;
  let isOver = false;
  const renew = async () => {
    // If the database cannot be reached, the worker keeps the lease, because nobody else can claim the import either.
    const isHeld = await renewLease(database, lease).catch(() => true);
    if (!isHeld) lost.abort();
    else if (!isOver) schedule();
  };
  const schedule = () => {
    cancel = coordination.clock.after(LEASE_RENEWAL_MS, () => void renew());
  };
  schedule();
  return () => {
    isOver = true;
    cancel();
  };
}

/** How an import ended: the number of entries in its body, or the code of the error in its response. */
type ImportEnd = { state: 'done'; entries: number } | { state: 'failed'; error: ErrorCode };

function noteEnd(
  { log, metrics }: ImportContext,
  { userId, id }: Lease,
  end: ImportEnd,
  ms: number,
  traceParent: string | null,
): void {
  metrics.importEnded(end.state, ms / 1_000);
  // The second part of a trace parent is the id of the trace.
  const trace = traceParent?.split('-')[1];
  log.info({ importId: id, user: userId, ...end, ms: Math.round(ms), trace }, 'import ended');
}

/**
 * Returns a promise that rejects when the signal aborts. The worker then does not wait for its statement, because the
 * statement may wait for a lock for a long time. Without the lease, the statement changes nothing.
 */
const rejectWhenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

/**
 * Releases a lease, and tries again while the database is unavailable. If the lease cannot be released, it expires
 * later. If `returnsAttempt` is true and the lease is released, this run does not count as an attempt.
 */
async function release(context: ImportContext, lease: Lease, returnsAttempt: boolean): Promise<void> {
  const { clock } = context.coordination;
  const deadline = clock.now() + LEASE_MS;
  for (;;) {
    try {
      return await releaseLease(context.database, lease, returnsAttempt);
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable) || clock.now() >= deadline) return;
    }
    await sleep(RELEASE_INTERVAL_MS);
  }
}

class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** Prepares and writes an import. Returns how it ended, or undefined if the lease was lost. */
async function prepareAndWrite(
  context: ImportContext,
  lease: Lease,
  signal: AbortSignal,
): Promise<ImportEnd | undefined> {
  const { importDatabase, config } = context;
  try {
    // All checks come before the statement that takes the user's lock.
    const prepared = await prepare(context, lease, signal);
    const written = await finishImport(importDatabase, lease, prepared, {
      bookmarks: config.freeBookmarkLimit,
      trash: trashLimitOf(config),
    });
    return written && { state: 'done', entries: prepared.entries };
  } catch (error) {
    if (error instanceof LeaseLost) return undefined;
    if (!(error instanceof ApiError)) throw error;
    await refuseImport(importDatabase, lease, JSON.stringify(error.body));
    return { state: 'failed', error: error.code };
  }
}

/** Parses and checks the stored body, and stores its full batches. Throws `LeaseLost` if the lease was lost. */
function prepare(
  { importDatabase, preparers }: ImportContext,
  lease: Lease,
  signal: AbortSignal,
): Promise<PreparedImport> {
  let position = 0;
  const stage = async (batch: ImportBatch) => {
    if (!(await stageBatch(importDatabase, lease, position, batch))) throw new LeaseLost();
    position += 1;
  };
  return preparers.prepare(readBody(importDatabase, lease), stage, signal);
}

/** Yields the body of a staged import. Reads the next chunks while the consumer uses the current ones. */
async function* readBody(db: Database, staged: ImportKey): AsyncGenerator<Buffer, undefined> {
  // Positions begin at 0, so the first read begins after -1.
  let nextChunks = readChunks(db, staged, -1);
  for (;;) {
    const chunks = await nextChunks;
    if (chunks.length === 0) return;
    nextChunks = readChunks(db, staged, chunks.at(-1)!.position);
    // If the consumer stops here, nothing else handles a rejection of this promise.
    nextChunks.catch(() => {});
    for (const { bytes } of chunks) {
      yield bytes;
      freeBytes(bytes);
    }
  }
}
