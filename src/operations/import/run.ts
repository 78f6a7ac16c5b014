import { importTopic, wakePolls } from '../../coordination/topics.ts';
import { ApiError } from '../../domain/errors.ts';
import { parseJson } from '../../domain/json.ts';
import {
  finishImport,
  type ImportWork,
  readChunks,
  readImport,
  refuseImport,
  type StagedImport,
} from '../../store/imports.ts';
import type { ImportContext } from './context.ts';
import { type PreparedImport, prepareImport } from './entries.ts';
import { parseJobId } from './job.ts';

/** What the import's statement takes. */
export const workOf = ({ replace, columns, skipped, errors }: PreparedImport): ImportWork => ({
  replace,
  columns,
  skipped,
  errors: JSON.stringify(errors),
});

/**
 * Runs a staged import: reads its bytes, checks them, writes them and the answer in one transaction. Any number of
 * workers may do so for one import, at once or one after the other: it happens once (decision 21). Rejects where the
 * database cannot be reached; the import is then still queued.
 */
export async function runImport(context: ImportContext, jobId: string): Promise<void> {
  const staged = parseJobId(jobId);
  if (staged === undefined) return;
  const found = await readImport(context.importDatabase, staged);
  const { clock, wakes } = context.coordination;
  const tell = () => {
    wakes.wake(importTopic(jobId));
    wakePolls(wakes, staged.userId);
  };
  // The worker before this one may have died after its transaction and before it told anybody.
  if (found?.state === 'done') tell();
  if (found?.state !== 'queued') return;
  const begunAt = clock.now();
  const hasSucceeded = await context.tracing.resume(found.traceParent, 'import job', () =>
    writeAnswer(context, staged),
  );
  context.metrics.importEnded(hasSucceeded ? 'done' : 'failed', (clock.now() - begunAt) / 1_000);
  tell();
}

/** Writes what the import's request answers; false where that is an error. */
async function writeAnswer(context: ImportContext, staged: StagedImport): Promise<boolean> {
  const { importDatabase, config } = context;
  try {
    // All checks are done before the statement that takes the user's lock.
    const work = workOf(await prepareImport(parseJson(await readBody(context, staged))));
    await finishImport(importDatabase, staged, work, config.freeBookmarkLimit);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    await refuseImport(importDatabase, staged, JSON.stringify(error.body));
    return false;
  }
}

async function readBody({ importDatabase }: ImportContext, staged: StagedImport): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (;;) {
    const more = await readChunks(importDatabase, staged, chunks.length);
    if (more.length === 0) return Buffer.concat(chunks);
    chunks.push(...more);
  }
}
