import type { Context } from '../context.ts';
import { jobIdOf } from '../store/staged-imports.ts';
import {
  deleteExpiredInvites,
  deleteExpiredTokens,
  deleteOldChanges,
  deleteOldImports,
  deleteOldResponses,
  deleteOldTrash,
  findQueuedImports,
} from '../store/sweep.ts';
import { beginRound, buildPendingFilters } from './pending-filters.ts';

/**
 * The work that every process repeats: it deletes expired rows, and stores when tokens were last used. Processes with a
 * worker also queue imports whose job was lost, and build the Bloom filters of new blocks of search texts.
 */

const EXPIRED_INTERVAL_MS = 60_000;
const IMPORTS_INTERVAL_MS = 3_000;
const USES_INTERVAL_MS = 10_000;
const FILTER_INTERVAL_MS = 3_000;

/**
 * A staged import that has waited for a worker for this long is queued again. Its job may have been lost when Redis
 * restarted empty or a process died. If the worker of an import died, the import is queued again only after its lease
 * has expired. Another worker then begins the import, at most 13 s after the first worker died.
 */
const REQUEUE_AFTER_MS = 3_000;

async function requeueImports({
  database,
  coordination,
}: Pick<Context, 'coordination' | 'database'>): Promise<void> {
  for (const staged of await findQueuedImports(database, REQUEUE_AFTER_MS)) {
    await coordination.imports.add(jobIdOf(staged));
  }
}

/**
 * Deletes old and abandoned imports. This runs often, because an abandoned upload blocks its user's next large import.
 */
async function deleteAbandonedImports({ database, log }: Pick<Context, 'database' | 'log'>): Promise<void> {
  const deleted = await deleteOldImports(database);
  if (deleted > 0) log.info({ deleted }, 'deleted old imports');
}

const writeLastUses = ({
  lastUses,
  database,
  config,
}: Pick<Context, 'config' | 'database' | 'lastUses'>): Promise<void> =>
  lastUses.write(database, config.sessionDays);

/** Deletes expired rows in batches, until none are left or the process drains. */
export async function deleteLeftovers({
  config,
  database,
  lifecycle,
  log,
}: Pick<Context, 'config' | 'database' | 'lifecycle' | 'log'>): Promise<void> {
  let deleted = 0;
  // Each function deletes one batch, and resolves with the number of deleted rows.
  const deleteBatches = [
    () => deleteExpiredTokens(database),
    () => deleteOldResponses(database),
    () => deleteOldChanges(database, config.changesDays),
    () => deleteOldTrash(database, config.trashDays),
    // Every node of a sharded database has a copy of the invites, so this function fails while a node is down. It
    // comes last, so that the other functions have already run by then.
    () => deleteExpiredInvites(database),
  ];
  for (const deleteBatch of deleteBatches) {
    while (!lifecycle.draining) {
      const count = await deleteBatch();
      if (count === 0) break;
      deleted += count;
    }
  }
  if (deleted > 0) log.info({ deleted }, 'deleted expired rows');
}

/**
 * Runs a sweep at an interval with jitter, so that replicas do not sweep at the same time. Runs never overlap. The
 * returned function stops the repetition, and resolves when a running sweep has ended.
 */
function repeat(
  context: Context,
  intervalMs: number,
  sweep: (context: Context) => Promise<void>,
): () => Promise<void> {
  /** The timer of the next or the current run. Undefined after the repetition was stopped. */
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const schedule = () => {
    timer = setTimeout(run, intervalMs * (0.75 + Math.random() / 2));
    timer.unref();
  };
  const run = () => {
    running = sweep(context)
      .catch((error: unknown) => context.log.warn({ err: error }, 'sweep failed'))
      .then(() => {
        if (timer !== undefined) schedule();
      });
  };
  schedule();
  return () => {
    clearTimeout(timer);
    timer = undefined;
    return running;
  };
}

/** Starts the sweeps. The returned function stops them, and resolves when running sweeps have ended. */
export function startSweeper(context: Context, hasWorker: boolean): () => Promise<void> {
  const filterRound = beginRound();
  const stops = [
    repeat(context, EXPIRED_INTERVAL_MS, deleteLeftovers),
    repeat(context, IMPORTS_INTERVAL_MS, deleteAbandonedImports),
    repeat(context, USES_INTERVAL_MS, writeLastUses),
    ...(hasWorker
      ? [
          repeat(context, IMPORTS_INTERVAL_MS, requeueImports),
          repeat(context, FILTER_INTERVAL_MS, () => buildPendingFilters(context, filterRound)),
        ]
      : []),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
    // Writes the uses since the last sweep. If this fails, these uses are missing in Postgres until the tokens
    // are used again.
    await writeLastUses(context).catch(() => {});
  };
}
