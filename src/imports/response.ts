import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable } from '../store/driver/errors.ts';
import { deleteErrors, readErrors, readImport, type StagedImport } from '../store/staged-imports.ts';
import type { ImportContext } from './context.ts';

/** The responses of imports. An import may have many errors, so its response may be a stream. */

/** JSON text, or a stream of it. */
export type ImportResponse = string | Readable;

/** Thrown if it is unknown what an import did. Any response could be false, so the connection is closed instead. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}

/** How long to retry reading an import from the database, and the pause between attempts. */
const READ_WAIT_MS = 10_000;
const READ_INTERVAL_MS = 200;

/**
 * Returns the beginning of a response: the result without its closing brace, and the beginning of the list of errors.
 */
const head = (result: string): string => `${result.slice(0, -1)},"errors":[`;

/** Returns the response of an import whose errors are in memory. `errors` contains JSON objects separated by commas. */
export const writeResponse = (result: string, errors: string): string => `${head(result)}${errors}]}`;

/**
 * Returns the response of an import whose errors are in the database, and deletes the errors at the end. If the first
 * errors cannot be read, throws `OutcomeUnknown`, because an error response would mean that nothing was imported. If
 * later errors are missing, the stream fails, so that the client does not take the response for complete.
 */
export async function streamResponse(
  context: ImportContext,
  staged: StagedImport,
  result: string,
): Promise<Readable> {
  const parts = writeParts(context, staged, result);
  const first = await parts.next();
  return Readable.from(startWith(first.value as string, parts), { objectMode: true, highWaterMark: 1 });
}

/** Yields a first part that was read already, then the later parts. Always ends `laterParts`, to run its `finally`. */
async function* startWith(first: string, laterParts: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    yield first;
    yield* laterParts;
  } finally {
    await laterParts.return(undefined);
  }
}

async function* writeParts(
  context: ImportContext,
  staged: StagedImport,
  result: string,
): AsyncGenerator<string> {
  const { database } = context;
  try {
    // Positions begin at 0, so the first read begins after -1.
    let part = await untilRead(context, () => readErrors(database, staged, -1));
    let prefix = head(result);
    while (part !== undefined) {
      yield prefix + part.errors;
      prefix = ',';
      const { position } = part;
      part = await untilRead(context, () => readErrors(database, staged, position));
    }
    const state = await untilRead(context, () => readImport(database, staged));
    // If the errors were deleted meanwhile, some of them may be missing from the response.
    if (!state?.errorBytes) throw new OutcomeUnknown('errors of an import have gone');
    yield ']}';
  } finally {
    // If this fails, the sweep deletes the errors later.
    await deleteErrors(database, staged).catch(() => {});
  }
}

/** Calls `read` until the database responds. Throws `OutcomeUnknown` after `READ_WAIT_MS`. */
async function untilRead<Row>(
  { coordination: { clock } }: ImportContext,
  read: () => Promise<Row>,
): Promise<Row> {
  const deadline = clock.now() + READ_WAIT_MS;
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error;
      if (clock.now() >= deadline)
        throw new OutcomeUnknown('errors of an import cannot be read', { cause: error });
    }
    await sleep(READ_INTERVAL_MS);
  }
}
