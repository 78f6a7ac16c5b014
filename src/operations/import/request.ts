import { setTimeout as sleep } from 'node:timers/promises';
import { importChannel, notifyPolls } from '../../coordination/channels.ts';
import { ApiError, type ErrorBody, invalidToken, unavailable } from '../../domain/errors.ts';
import type { Idempotency } from '../../domain/idempotency.ts';
import type { Principal } from '../../domain/tokens.ts';
import { DatabaseUnavailable } from '../../store/errors.ts';
import {
  findKnownUrls,
  type ImportResult,
  importBookmarks,
  type PreparedImport,
} from '../../store/imports.ts';
import {
  cancelImport,
  type ImportState,
  queueImport,
  readImport,
  type StagedImport,
} from '../../store/staged-imports.ts';
import type { ImportContext } from './context.ts';
import { jobIdOf, newImport } from './job.ts';
import { tryAgainWhereChanged } from './preparation.ts';
import { type ImportResponse, OutcomeUnknown, streamResponse, writeResponse } from './response.ts';

/**
 * How the request of an import gets its response (decisions 19 and 21). An import whose response is 503 has not happened and
 * never will: it is cancelled in Postgres before. Where Postgres cannot confirm that, the connection breaks instead.
 */

const READ_INTERVAL_MS = 1_000;

/** How long a draining replica still waits for a worker. */
const DRAIN_WAIT_MS = 8_000;

/** How long the request tries to cancel an import, or to learn that it was done. */
const SETTLE_MS = 10_000;

const SETTLE_INTERVAL_MS = 200;

/** For a staged import whose response could not be kept. */
const KEPT_RETRY_SECONDS = 60;

/** Imports a small body in this request. */
export async function importInline(
  context: ImportContext,
  principal: Principal,
  body: Buffer,
  idempotency?: Idempotency,
): Promise<ImportResponse> {
  const { importDatabase, importPermits, config } = context;
  const inline = newImport(principal.userId);
  let errors = '';
  const write = async (looksAhead: boolean) => {
    const prepared = await prepareSmall(context, principal, body, looksAhead);
    errors = prepared.errors;
    return importPermits.run(principal.userId, () =>
      importBookmarks(importDatabase, principal, inline.id, prepared, config.freeBookmarkLimit, idempotency),
    );
  };
  const { result, errorBytes } = await tryAgainWhereChanged(write).catch(async (error) => {
    if (!(error instanceof DatabaseUnavailable && error.mayHaveRun)) throw error;
    return readResult(await settle(context, inline));
  });
  notifyPolls(context.coordination.notifier, principal.userId);
  // Where the key's first request had errors, they lie in the database.
  return errorBytes > 0 ? streamResponse(context, inline, result) : writeResponse(result, errors);
}

function prepareSmall(
  { importDatabase, preparers }: ImportContext,
  { userId }: Principal,
  body: Buffer,
  looksAhead: boolean,
): Promise<PreparedImport> {
  const findKnown = (urlKeys: readonly string[]) => findKnownUrls(importDatabase, userId, urlKeys);
  return preparers.prepare(body, { findKnown: looksAhead ? findKnown : undefined });
}

/**
 * Has a staged import run by a worker, waits for it and gives its response; an empty one where the client has gone before
 * its turn came: it is still queued then, and runs (decision 21).
 */
export async function importStaged(
  context: ImportContext,
  principal: Principal,
  staged: StagedImport,
  hasClient: () => boolean,
  idempotency?: Idempotency,
): Promise<ImportResponse> {
  const queue = () =>
    queueImport(context.database, principal, staged.id, {
      idempotency,
      traceParent: context.tracing.traceParent,
    });
  const state = await waitForEnd(context, staged, queue);
  if (state === undefined && !hasClient()) return '';
  const { result, errorBytes } = readResult(state ?? (await giveUp(context, staged)));
  // The worker does so as well, if it lived long enough.
  notifyPolls(context.coordination.notifier, staged.userId);
  return errorBytes > 0 ? streamResponse(context, staged, result) : writeResponse(result, '');
}

/** Where a staged import stands once it is over; undefined where it must be given up before. */
async function waitForEnd(
  context: ImportContext,
  staged: StagedImport,
  queue: () => Promise<void>,
): Promise<ImportState | undefined> {
  const { notifier, imports, clock } = context.coordination;
  const jobId = jobIdOf(staged);
  const waiter = notifier.register(importChannel(jobId), jobId);
  let deadline = clock.now() + context.config.importWaitSeconds * 1_000;
  let isDraining = false;
  try {
    await queueFirst(context, staged, queue);
    await imports.add(jobId);
    while (clock.now() < deadline) {
      const state = await readProgress(context, staged, queue);
      if (state !== undefined && state.state !== 'queued') return state;
      if (isDraining) await sleep(SETTLE_INTERVAL_MS);
      else if ((await waiter.next(Math.min(deadline, clock.now() + READ_INTERVAL_MS))) === 'drain') {
        isDraining = true;
        deadline = Math.min(deadline, clock.now() + DRAIN_WAIT_MS);
      }
    }
    return undefined;
  } finally {
    waiter.release();
  }
}

/** Where the response of Postgres is lost, `readProgress` learns whether the import is queued; the sweep is the last resort. */
async function queueFirst(
  context: ImportContext,
  staged: StagedImport,
  queue: () => Promise<void>,
): Promise<void> {
  try {
    await queue();
  } catch (error) {
    if (error instanceof DatabaseUnavailable) return;
    // Best effort: what was not queued never runs, and is swept by its age.
    await cancelImport(context.database, staged).catch(() => {});
    throw error;
  }
}

/** Where the import stands; undefined while the database cannot say. */
async function readProgress(
  context: ImportContext,
  staged: StagedImport,
  queue: () => Promise<void>,
): Promise<ImportState | undefined> {
  try {
    const state = await readImport(context.database, staged);
    // The row has gone with its account.
    if (state === undefined) throw invalidToken();
    if (state.state !== 'receiving') return state;
    await queue();
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseUnavailable) return undefined;
    throw error;
  }
}

/** Settles an import that no worker has ended in time, and counts it where it is cancelled. */
async function giveUp(context: ImportContext, staged: StagedImport): Promise<ImportState> {
  const state = await settle(context, staged);
  if (state.state === 'cancelled') context.metrics.importEnded('cancelled', 0);
  return state;
}

/**
 * Cancels the import, or learns that it is done. Throws `INVALID_TOKEN` if the account was deleted, and `OutcomeUnknown`
 * if the database does not respond in time.
 */
async function settle(context: ImportContext, staged: StagedImport): Promise<ImportState> {
  const { clock } = context.coordination;
  const deadline = clock.now() + SETTLE_MS;
  for (;;) {
    try {
      const state = await cancelImport(context.database, staged);
      if (state === undefined) throw invalidToken();
      return state;
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error;
      if (clock.now() >= deadline)
        throw new OutcomeUnknown('nobody knows whether an import was done', { cause: error });
    }
    await sleep(SETTLE_INTERVAL_MS);
  }
}

/** What an import did; throws the error that it ended with, or that it was cancelled. */
function readResult({ result, errorBytes }: ImportState): ImportResult {
  if (result === null) throw unavailable('the import was not done and will not be', 5);
  if (!result.startsWith('{"error"')) return { result, errorBytes };
  const { code, error }: ErrorBody = JSON.parse(result);
  throw new ApiError(code, error, code === 'RATE_LIMITED' ? KEPT_RETRY_SECONDS : undefined);
}
