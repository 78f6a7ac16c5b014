import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable } from '../store/driver/errors.ts';
import { deleteErrors, type ImportKey, type ImportState, readErrors } from '../store/staged-imports.ts';
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

/** The result of an import whose errors are in the database. */
export interface StoredResult extends Pick<ImportState, 'errorsId' | 'errorBytes'> {
  result: string;
}

/**
 * Returns the response of an import whose errors are in the database, and deletes the errors at the end, unless they are
 * kept for an idempotency key. If the first errors cannot be read, throws `OutcomeUnknown`, because an error response
 * would mean that nothing was imported. If later errors are missing, the stream fails, so that the client does not take
 * the response for complete.
 */
export async function readResponse(
  context: ImportContext,
  userId: number,
  stored: StoredResult,
): Promise<ImportResponse> {
  if (stored.errorBytes === 0) return writeResponse(stored.result, '');
  const parts = writeParts(context, userId, stored);
  const first = await parts.next();
  return Readable.from(startWith(first.value as Buffer, parts), { objectMode: true, highWaterMark: 1 });
}

/** Yields a first part that was read already, then the later parts. Always ends `laterParts`, to run its `finally`. */
async function* startWith(first: Buffer, laterParts: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield first;
    yield* laterParts;
  } finally {
    await laterParts.return(undefined);
  }
}

async function* writeParts(
  context: ImportContext,
  userId: number,
  { result, errorsId, errorBytes }: StoredResult,
): AsyncGenerator<Buffer> {
  const { database } = context;
  const key: ImportKey = { userId, id: errorsId };
  try {
    for (let offset = 0; offset < errorBytes; ) {
      const position = offset;
      const errors = await untilRead(context, () => readErrors(database, key, position));
      if (!errors?.length) throw new OutcomeUnknown('errors of an import have gone');
      offset += errors.length;
      yield position === 0 ? Buffer.concat([Buffer.from(head(result)), errors]) : errors;
    }
    yield Buffer.from(']}');
  } finally {
    // If this fails, the sweep deletes the errors later.
    await deleteErrors(database, key).catch(() => {});
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
