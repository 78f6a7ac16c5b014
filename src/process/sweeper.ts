import type { Context } from '../context.ts';
import { jobIdOf } from '../operations/import/job.ts';
import { deleteExpired, deleteOldChanges, deleteOldImports, findQueuedImports } from '../store/sweep.ts';

/** Keeps the database clean, and lost jobs running. Every replica sweeps; what one has done the others do not find. */

const EXPIRED_INTERVAL_MS = 60_000;
const IMPORTS_INTERVAL_MS = 3_000;

/**
 * A staged import that no worker has for longer may have lost its job: Redis restarted empty, or a process died. With the
 * 9 s of a lease another worker has it within 13 s.
 */
const REQUEUE_AFTER_MS = 3_000;

async function sweepImports({ database, coordination, log }: Context): Promise<void> {
  for (const staged of await findQueuedImports(database, REQUEUE_AFTER_MS)) {
    await coordination.imports.add(jobIdOf(staged));
  }
  // As often: an upload that its replica died under keeps its user from another one.
  const deleted = await deleteOldImports(database);
  if (deleted > 0) log.info({ deleted }, 'old imports swept');
}

/** Deletes all that has run out, bite by bite: a single one a minute would fall behind what clients leave. */
export async function deleteLeftovers({ config, database, lifecycle, log }: Context): Promise<void> {
  let deleted = 0;
  const steps = [() => deleteExpired(database), () => deleteOldChanges(database, config.changesDays)];
  for (const step of steps) {
    for (let count = 1; count > 0 && !lifecycle.draining; deleted += count) count = await step();
  }
  if (deleted > 0) log.info({ deleted }, 'leftovers swept');
}

/** Runs a sweep every so often, jittered so that replicas do not sweep together; never two at once. */
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

/** Starts sweeping; call what it answers to stop, which waits for the sweeps at work. */
export function startSweeper(context: Context): () => Promise<void> {
  const stops = [
    repeat(context, EXPIRED_INTERVAL_MS, deleteLeftovers),
    repeat(context, IMPORTS_INTERVAL_MS, sweepImports),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
  };
}
