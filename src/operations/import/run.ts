import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { importChannel, notifyPolls } from '../../coordination/channels.ts';
import { ApiError } from '../../domain/errors.ts';
import type { Database } from '../../store/database.ts';
import { DatabaseUnavailable } from '../../store/errors.ts';
import { type Claim, claimImport, type Lease, releaseLease } from '../../store/import-leases.ts';
import { dropPieces, refuseImport, stageErrors, stagePiece } from '../../store/import-pieces.ts';
import { findKnownUrls, finishImport, type PreparedImport } from '../../store/imports.ts';
import { readChunks, type StagedImport } from '../../store/staged-imports.ts';
import type { ImportContext } from './context.ts';
import { jobIdOf, parseJobId } from './job.ts';
import { LeaseRenewal } from './lease-renewal.ts';
import { type Stage, tryAgainWhereChanged } from './preparation.ts';

/** A worker's part of a large import: from its entries as they were sent to its result. */

/** How long a lease that was not used up is offered back while the database cannot be reached: as long as it lasts. */
const RELEASE_WAIT_MS = 9_000;

const RELEASE_INTERVAL_MS = 1_000;

/**
 * Runs a staged import, unless another worker has it: reads its entries, checks them, and writes them and the result in one
 * transaction. It happens once (decision 21), and is begun by at most three workers (decision 34). Rejects where the
 * database cannot be reached; the import is then still queued. Gives it back when `stop` aborts.
 */
export async function runImport(context: ImportContext, jobId: string, stop: AbortSignal): Promise<void> {
  const staged = parseJobId(jobId);
  if (staged === undefined) return;
  const lease: Lease = { ...staged, leaseId: randomUUID() };
  const claim = await claimImport(context.database, lease);
  if (claim?.outcome === 'claimed') await runClaimed(context, lease, claim, stop);
  if (claim?.outcome === 'given up') noteGivenUp(context, lease, claim);
  // The worker before this one may have died after its transaction and before it told anybody.
  if (claim !== undefined && claim.outcome !== 'queued') notifyWaiters(context, lease);
}

function notifyWaiters({ coordination: { notifier } }: ImportContext, staged: StagedImport): void {
  notifier.notify(importChannel(jobIdOf(staged)));
  notifyPolls(notifier, staged.userId);
}

function noteGivenUp({ log, metrics }: ImportContext, { userId, id }: Lease, { attempts }: Claim): void {
  log.error(
    { importId: id, user: userId, attempts },
    'import given up: every worker that began it has ended',
  );
  metrics.importEnded('given_up', 0);
}

async function runClaimed(
  context: ImportContext,
  lease: Lease,
  claim: Claim,
  stop: AbortSignal,
): Promise<void> {
  const { clock } = context.coordination;
  const begunAt = clock.now();
  using renewal = new LeaseRenewal(context, lease);
  const signal = AbortSignal.any([stop, renewal.lost]);
  try {
    const end = await Promise.race([
      context.tracing.resume(claim.traceParent, 'import job', () => prepareAndWrite(context, lease, signal)),
      rejectWhenAborted(signal),
    ]);
    if (end !== undefined) noteEnd(context, lease, end, clock.now() - begunAt, claim.traceParent);
  } catch (error) {
    // What stopped the run lies outside of the import; anything else may happen again, to any worker.
    const isInnocent = signal.aborted || error instanceof DatabaseUnavailable;
    await release(context, lease, isInnocent);
    if (!signal.aborted) throw error;
  }
}

/** How an import ended: how many entries were sent, or the code of the error in its response. */
type ImportEnd = { state: 'done'; entries: number } | { state: 'failed'; error: string };

function noteEnd(
  { log, metrics }: ImportContext,
  { userId, id }: Lease,
  end: ImportEnd,
  ms: number,
  traceParent: string | null,
): void {
  metrics.importEnded(end.state, ms / 1_000);
  const trace = traceParent?.split('-')[1];
  log.info({ importId: id, user: userId, ...end, ms: Math.round(ms), trace }, 'import ended');
}

/** A statement that waits for a lock may take long: without its lease the run can write nothing any more. */
const rejectWhenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

/** Best effort: a lease that is not released ends by itself, and has cost the import an attempt. */
async function release(context: ImportContext, lease: Lease, returnsAttempt: boolean): Promise<void> {
  const { clock } = context.coordination;
  const deadline = clock.now() + RELEASE_WAIT_MS;
  for (;;) {
    try {
      return await releaseLease(context.database, lease, returnsAttempt);
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable) || clock.now() >= deadline) return;
    }
    await sleep(RELEASE_INTERVAL_MS);
  }
}

/** The lease is another worker's, or the import is over. */
class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** Done, or failed where an error is the response; undefined where the lease is lost. */
async function prepareAndWrite(
  context: ImportContext,
  lease: Lease,
  signal: AbortSignal,
): Promise<ImportEnd | undefined> {
  const { importDatabase, config } = context;
  try {
    return await tryAgainWhereChanged(async (looksAhead) => {
      // All checks are done before the statement that takes the user's lock.
      const prepared = await prepare(context, lease, looksAhead, signal);
      const isWritten = await finishImport(importDatabase, lease, prepared, config.freeBookmarkLimit);
      return isWritten ? { state: 'done', entries: prepared.entries } : undefined;
    });
  } catch (error) {
    if (error instanceof LeaseLost) return undefined;
    if (!(error instanceof ApiError)) throw error;
    await refuseImport(importDatabase, lease, JSON.stringify(error.body));
    return { state: 'failed', error: error.code };
  }
}

async function prepare(
  { importDatabase, preparers }: ImportContext,
  lease: Lease,
  looksAhead: boolean,
  signal: AbortSignal,
): Promise<PreparedImport> {
  if (!looksAhead) await dropPieces(importDatabase, lease);
  const requireLease = (isHeld: boolean) => {
    if (!isHeld) throw new LeaseLost();
  };
  const stage: Stage = {
    putPiece: async (position, piece) =>
      requireLease(await stagePiece(importDatabase, lease, position, piece)),
    putErrors: async (position, errors) =>
      requireLease(await stageErrors(importDatabase, lease, position, errors)),
  };
  const findKnown = looksAhead
    ? (urlKeys: readonly string[]) => findKnownUrls(importDatabase, lease.userId, urlKeys)
    : undefined;
  return preparers.prepare(readBody(importDatabase, lease), { findKnown, stage }, signal);
}

/** The body of a staged import; the next chunks are read while these are in use. */
async function* readBody(db: Database, staged: StagedImport): AsyncGenerator<Buffer, undefined> {
  for (let next = readChunks(db, staged, -1); ; ) {
    const chunks = await next;
    if (chunks.length === 0) return;
    next = readChunks(db, staged, chunks.at(-1)!.position);
    // A reader that stops here does not await it any more.
    next.catch(() => {});
    for (const { bytes } of chunks) yield bytes;
  }
}
