import type { Context } from '../context.ts';
import { jobIdOf } from '../operations/import/job.ts';
import {
  deleteExpiredInvites,
  deleteExpiredTokens,
  deleteOldChanges,
  deleteOldImports,
  deleteOldResponses,
  deleteOldTrash,
  findPendingFilters,
  findQueuedImports,
  signBlocks,
} from '../store/sweep.ts';
import { beginRound, serveInTurn, type UserWork } from './user-rounds.ts';

/**
 * Deletes what has expired: every replica does, and one finds nothing that another has done. Queues imports whose job was
 * lost: processes with a worker do, for what all queued all would find. They also build the Bloom filters of new search blocks. Writes when tokens
 * were used last.
 */

const EXPIRED_INTERVAL_MS = 60_000;
const IMPORTS_INTERVAL_MS = 3_000;
const USES_INTERVAL_MS = 10_000;
const FILTER_INTERVAL_MS = 3_000;

/**
 * A staged import that no worker has for longer may have lost its job: Redis restarted empty, or a process died. With the
 * 9 s of a lease another worker has it within 13 s.
 */
const REQUEUE_AFTER_MS = 3_000;

async function requeueImports({ database, coordination }: Context): Promise<void> {
  for (const staged of await findQueuedImports(database, REQUEUE_AFTER_MS)) {
    await coordination.imports.add(jobIdOf(staged));
  }
}

/** Often: an upload whose replica died blocks the next large import of its user. */
async function deleteAbandonedImports({ database, log }: Context): Promise<void> {
  const deleted = await deleteOldImports(database);
  if (deleted > 0) log.info({ deleted }, 'old imports swept');
}

const writeLastUses = ({ lastUses, database, config }: Context): Promise<void> =>
  lastUses.write(database, config.sessionDays);

const PENDING_FILTERS: UserWork = {
  find: findPendingFilters,
  doBatch: ({ database }, userId) => signBlocks(database, userId),
};

/** Builds the Bloom filters of blocks that were written since; until then searches read these whole. */
export const buildPendingFilters = (context: Context, round = beginRound()): Promise<void> =>
  serveInTurn(context, PENDING_FILTERS, round);

/** Deletes all that has expired, batch by batch: one batch a minute would fall behind what clients leave. */
export async function deleteLeftovers({ config, database, lifecycle, log }: Context): Promise<void> {
  let deleted = 0;
  const steps = [
    () => deleteExpiredTokens(database),
    () => deleteOldResponses(database),
    () => deleteOldChanges(database, config.changesDays),
    () => deleteOldTrash(database, config.trashDays),
    // Of a sharded database every node has the invites: while one is down none of them can be deleted.
    () => deleteExpiredInvites(database),
  ];
  for (const step of steps) {
    for (let count = 1; count > 0 && !lifecycle.draining; deleted += count) count = await step();
  }
  if (deleted > 0) log.info({ deleted }, 'leftovers swept');
}

/**
 * Runs a sweep at an interval with jitter, so that replicas do not sweep together; never two at once. Returns what
 * stops it.
 */
function repeat(
  context: Context,
  intervalMs: number,
  sweep: (context: Context) => Promise<void>,
): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const schedule = () => {
    timer = setTimeout(run, intervalMs * (0.75 + Math.random() / 2));
    timer.unref();
  };
  const run = () => {
    running = sweep(context)
      .catch((error: unknown) => context.log.warn({ err: error }, 'sweep failed'))
      .then(() => (timer === undefined ? undefined : schedule()));
  };
  schedule();
  return () => {
    clearTimeout(timer);
    timer = undefined;
    return running;
  };
}

/** Starts sweeping. The function that it returns stops it, and resolves when sweeps at work have ended. */
export function startSweeper(context: Context, hasWorker: boolean): () => Promise<void> {
  const filters = beginRound();
  const stops = [
    repeat(context, EXPIRED_INTERVAL_MS, deleteLeftovers),
    repeat(context, IMPORTS_INTERVAL_MS, deleteAbandonedImports),
    repeat(context, USES_INTERVAL_MS, writeLastUses),
    ...(hasWorker
      ? [
          repeat(context, IMPORTS_INTERVAL_MS, requeueImports),
          repeat(context, FILTER_INTERVAL_MS, () => buildPendingFilters(context, filters)),
        ]
      : []),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
    await writeLastUses(context).catch(() => {});
  };
}
