import { ApiError } from '../domain/errors.ts';
import type { ImportBatch } from '../store/imports.ts';
import { prepareEntries } from './batches.ts';
import { parseImport } from './body.ts';
import type { FromChild, ToChild } from './preparers.ts';

/**
 * The process that prepares long imports for its parent. It gathers the chunks of a body, parses the body, checks the
 * entries, and sends full batches to its parent, which stores them. The process ends when its parent ends, or when its
 * own heap is full.
 */

const send = (message: FromChild): void => void process.send!(message);

const chunks: Uint8Array[] = [];
/** Resolves when the parent has stored the latest batch. */
let staged: PromiseWithResolvers<void>;

/** Sends a batch once the parent has stored the previous batch. */
async function stage(batch: ImportBatch): Promise<void> {
  await staged.promise;
  staged = Promise.withResolvers();
  send({ type: 'batch', batch });
}

async function prepare(stages: boolean): Promise<void> {
  staged = Promise.withResolvers();
  staged.resolve();
  try {
    // `splice` empties the array, so that the chunks can be freed before the body is parsed.
    const body = parseImport(Buffer.concat(chunks.splice(0)));
    const prepared = await prepareEntries(body, stages ? stage : undefined);
    await staged.promise;
    send({ type: 'prepared', prepared });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    send({ type: 'refused', code: error.code, message: error.message });
  }
}

process.on('message', (message: ToChild) => {
  if (message.type === 'chunk') chunks.push(message.bytes);
  else if (message.type === 'staged') staged.resolve();
  else void prepare(message.stages);
});
process.once('disconnect', () => process.exit());
// Ignores signals to the process group. The parent handles them, and ends this process when it is no longer needed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
