import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { importChannel, notifyPolls } from '../coordination/channels.ts';
import { ApiError, type ErrorBody, invalidToken, unavailable } from '../domain/errors.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Principal } from '../domain/tokens.ts';
import { currentTraceParent } from '../observability/tracing.ts';
import { DatabaseUnavailable } from '../store/driver/errors.ts';
import { beginSmallImport } from '../store/import-leases.ts';
import { finishImport, type PreparedImport } from '../store/imports.ts';
import {
  cancelImport,
  type ImportKey,
  type ImportState,
  jobIdOf,
  type Lease,
  newImport,
  queueImport,
  readImport,
} from '../store/staged-imports.ts';
import { trashLimitOf } from '../store/trash.ts';
import type { ImportContext } from './context.ts';
import { type ImportBody, receiveImport } from './receive.ts';
import {
  type ImportResponse,
  OutcomeUnknown,
  readResponse,
  type StoredResult,
  writeResponse,
} from './response.ts';

/**
 * How the request of an import gets its response (docs/contract.md, decisions 19 and 21). Before a request gets a 503,
 * its import is cancelled in Postgres, so that it cannot run later. If Postgres cannot confirm this, the connection
 * is closed without a response.
 */

/** How often the request reads the state of its import if no notification comes. */
const READ_INTERVAL_MS = 1_000;

/** How long a draining replica waits for a worker that runs the import. */
const DRAIN_WAIT_MS = 8_000;

/** How long the request tries to cancel an import, or to fetch its result. */
const CANCEL_WAIT_MS = 10_000;

/** The pause before a failed statement is sent again. */
const RETRY_INTERVAL_MS = 200;

/** The `Retry-After`, in seconds, if an `Idempotency-Key` is refused because the account has too many kept results. */
const KEPT_RETRY_SECONDS = 60;

/** The request of an import. */
interface ImportRequest {
  body: ImportBody;
  /** The length in the `Content-Length` header; undefined without this header. */
  announcedBytes: number | undefined;
  idempotencyKey: string | undefined;
  /** Whether the client is still connected. */
  hasClient: () => boolean;
}

/** Receives the body of an import, imports it, and returns the response. */
export async function answerImport(
  context: ImportContext,
  principal: Principal,
  { body, announcedBytes, idempotencyKey: key, hasClient }: ImportRequest,
): Promise<ImportResponse> {
  const keyed = key === undefined ? undefined : { key, hash: createHash('sha256').update('/import\n') };
  const received = await receiveImport(context, principal, body, {
    announcedBytes,
    requestHash: keyed?.hash,
  });
  const idempotency = keyed && { key: keyed.key, requestHash: keyed.hash.digest() };
  return Buffer.isBuffer(received)
    ? importInline(context, principal, received, idempotency)
    : importStaged(context, principal, received, hasClient, idempotency);
}

/** Imports a small body in this request. */
async function importInline(
  context: ImportContext,
  principal: Principal,
  body: Buffer,
  idempotency?: Idempotency,
): Promise<ImportResponse> {
  const { database, importPermits, preparers } = context;
  const { userId } = principal;
  const prepared = await preparers.prepare(body);
  const lease: Lease = { ...newImport(userId), leaseId: randomUUID() };
  const state = await importPermits.run(userId, async () => {
    await beginSmallImport(database, principal, lease, idempotency);
    return writeSmall(context, lease, prepared);
  });
  const stored = resultOrThrow(state);
  notifyPolls(context.coordination.notifier, userId);
  // The result of an earlier import with the same `Idempotency-Key` comes with the errors of that import.
  if (stored.errorsId !== lease.id) return readResponse(context, userId, stored);
  return writeResponse(stored.result, new TextDecoder().decode(prepared.batch.errors));
}

/** Writes a small import, and returns its final state. If the import was refused, cancels it and throws the error. */
async function writeSmall(
  context: ImportContext,
  lease: Lease,
  prepared: PreparedImport,
): Promise<ImportState> {
  const { database, importDatabase, config } = context;
  try {
    const limits = { bookmarks: config.freeBookmarkLimit, trash: trashLimitOf(config) };
    const written = await finishImport(importDatabase, lease, prepared, limits);
    if (written?.repeats === null)
      return { state: 'done', result: written.result, errorsId: lease.id, errorBytes: 0 };
  } catch (error) {
    if (!(error instanceof DatabaseUnavailable && error.mayHaveRun)) {
      // If this fails, the row stays until the sweep deletes it. Nobody else has the lease, so the import never runs.
      await cancelImport(database, lease).catch(() => {});
      throw error;
    }
  }
  return cancelOrFetch(context, lease);
}

/**
 * Queues a staged import, waits until a worker has run it, and returns the response. If the client leaves first, the
 * response is empty, but the import stays queued and runs (docs/contract.md, decision 21).
 */
async function importStaged(
  context: ImportContext,
  principal: Principal,
  staged: ImportKey,
  hasClient: () => boolean,
  idempotency?: Idempotency,
): Promise<ImportResponse> {
  const traceParent = currentTraceParent();
  const queue = () => queueImport(context.database, principal, staged.id, { idempotency, traceParent });
  let state = await waitForEnd(context, staged, queue);
  if (state === undefined) {
    if (!hasClient()) return '';
    state = await cancelOrFetch(context, staged);
    if (state.state === 'cancelled') context.metrics.importEnded('cancelled', 0);
  }
  const stored = resultOrThrow(state);
  // The worker notifies the polls too, unless it dies first.
  notifyPolls(context.coordination.notifier, staged.userId);
  return readResponse(context, staged.userId, stored);
}

/** Queues a staged import and waits for its end. Returns its final state, or undefined if it has not ended in time. */
async function waitForEnd(
  context: ImportContext,
  staged: ImportKey,
  queue: () => Promise<void>,
): Promise<ImportState | undefined> {
  const { notifier, imports, clock } = context.coordination;
  const jobId = jobIdOf(staged);
  const waiter = notifier.register(importChannel(jobId), jobId);
  let deadline = clock.now() + context.config.importWaitSeconds * 1_000;
  let isQueued = false;
  let isDraining = false;
  try {
    while (clock.now() < deadline) {
      // If the statement that queues the import was lost, it is sent again. The job is added only afterwards: a worker
      // that already has a job of this import ignores another one, and ends its job if the import is not queued.
      if (!isQueued) {
        isQueued = (await unlessUnavailable(() => queue().then(() => true))) ?? false;
        if (isQueued) await imports.add(jobId);
      }
      const state = await unlessUnavailable(() => readImport(context.database, staged).then(requireImport));
      if (state?.state === 'done' || state?.state === 'cancelled') return state;
      const pauseMs = isQueued ? READ_INTERVAL_MS : RETRY_INTERVAL_MS;
      // While the replica drains, `waiter.next` returns immediately, so the loop must pause by itself.
      if (isDraining) await sleep(RETRY_INTERVAL_MS);
      else if ((await waiter.next(Math.min(deadline, clock.now() + pauseMs))) === 'drain') {
        isDraining = true;
        deadline = Math.min(deadline, clock.now() + DRAIN_WAIT_MS);
      }
    }
    return undefined;
  } catch (error) {
    // Cancels the import, so that it does not run after this request has failed. If the cancellation fails too, a
    // queued import still runs. The sweep deletes an import that was not queued.
    await cancelImport(context.database, staged).catch(() => {});
    throw error;
  } finally {
    waiter.release();
  }
}

/** Returns the result of a call, or undefined if the database does not respond. */
async function unlessUnavailable<Result>(call: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof DatabaseUnavailable) return undefined;
    throw error;
  }
}

/** Throws `INVALID_TOKEN` if the import does not exist. In that case, it was deleted together with its account. */
function requireImport(state: ImportState | undefined): ImportState {
  if (state === undefined) throw invalidToken();
  return state;
}

/**
 * Cancels the import, or returns its result if it has ended. Throws `INVALID_TOKEN` if the account was deleted, and
 * `OutcomeUnknown` if the database does not respond in time.
 */
async function cancelOrFetch(context: ImportContext, staged: ImportKey): Promise<ImportState> {
  const { clock } = context.coordination;
  const deadline = clock.now() + CANCEL_WAIT_MS;
  for (;;) {
    try {
      return requireImport(await cancelImport(context.database, staged));
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error;
      if (clock.now() >= deadline)
        throw new OutcomeUnknown('nobody knows whether an import was done', { cause: error });
    }
    await sleep(RETRY_INTERVAL_MS);
  }
}

/** Returns the result of an import. Throws its error if it failed, and `UNAVAILABLE` if it was cancelled. */
function resultOrThrow({ result, errorsId, errorBytes }: ImportState): StoredResult {
  if (result === null) throw unavailable('the import was not done and will not be', 5);
  // The result of a failed import is the body of its error response, which begins with the field `error`.
  if (!result.startsWith('{"error"')) return { result, errorsId, errorBytes };
  const { code, error }: ErrorBody = JSON.parse(result);
  throw new ApiError(code, error, code === 'RATE_LIMITED' ? KEPT_RETRY_SECONDS : undefined);
}
