import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { invalid, unavailable } from '../../domain/errors.ts';
import type { Caller } from '../../domain/tokens.ts';
import { DatabaseUnavailable } from '../../store/errors.ts';
import { beginImport, cancelImport, type StagedImport, stageChunk } from '../../store/staged-imports.ts';
import { releaseBytes } from '../garbage.ts';
import type { ImportContext } from './context.ts';
import { newImport } from './job.ts';

/** The largest body of an import (decision 2). */
export const IMPORT_BODY_BYTES = 67_108_864;

/**
 * A chunk is staged once it is longer. Parts arrive 64 KiB long, and so each goes on as it came: garbage that short is
 * collected soon, where chunks of 1 MiB left a replica up to 65 MiB larger than before, these leave it 14.
 */
const CHUNK_BYTES = 32_768;

/** An import's body: small and at hand, or staged in Postgres, whole and not yet looked at. */
export type ReceivedImport = { bytes: Buffer } | { staged: StagedImport };

const tooLarge = () => invalid(`body: at most ${IMPORT_BODY_BYTES} bytes`);

/**
 * Reads the body of an import. What is longer than `importInlineBytes` goes to Postgres chunk by chunk, as fast as
 * Postgres takes it, so that memory stays flat; an upload that breaks off is dropped and never queued. `requestHash`
 * takes its bytes as they come.
 */
export async function receiveImport(
  context: ImportContext,
  caller: Caller,
  body: Readable,
  announcedBytes: number | undefined,
  requestHash: Hash | undefined,
): Promise<ReceivedImport> {
  if (announcedBytes !== undefined && announcedBytes > IMPORT_BODY_BYTES) throw tooLarge();
  const parts = readParts(body, requestHash);
  const head = await readUpTo(parts, context.config.importInlineBytes);
  if (head.ended) return { bytes: head.bytes };

  const staged = newImport(caller.userId);
  try {
    await begin(context, caller, staged, announcedBytes ?? IMPORT_BODY_BYTES);
    await stageOrDrop(context, staged, head.bytes, parts);
  } catch (error) {
    await discard(parts);
    throw error;
  }
  return { staged };
}

async function begin(
  context: ImportContext,
  caller: Caller,
  staged: StagedImport,
  bytes: number,
): Promise<void> {
  const { database, config } = context;
  try {
    await beginImport(database, caller, staged.id, bytes, config.importStagedBytes);
  } catch (error) {
    // It would hold the user's one place until it is swept.
    if (error instanceof DatabaseUnavailable && error.mayHaveRun) await drop(context, staged);
    throw error;
  }
}

async function stageOrDrop(
  context: ImportContext,
  staged: StagedImport,
  head: Buffer,
  parts: AsyncIterator<Buffer>,
): Promise<void> {
  try {
    await stageRest(context, staged, head, parts);
  } catch (error) {
    await drop(context, staged);
    throw error;
  }
}

/** Best effort: what stays behind was never queued, never runs, and is swept by its age. */
async function drop({ database }: ImportContext, staged: StagedImport): Promise<void> {
  await cancelImport(database, staged).catch(() => {});
}

async function* readParts(body: Readable, requestHash: Hash | undefined): AsyncGenerator<Buffer, undefined> {
  try {
    for await (const part of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      requestHash?.update(part);
      yield part;
    }
  } catch {
    // The client has gone. Nobody hears the answer, but it is no fault of the service.
    throw invalid('body: broke off');
  }
}

/**
 * Reads on to the body's end, at most as much as a body may have: many clients look for an answer only when they have
 * sent everything, and would find their connection reset instead.
 */
async function discard(parts: AsyncIterator<Buffer>): Promise<void> {
  try {
    for (let left = IMPORT_BODY_BYTES; left > 0; ) {
      const { value, done } = await parts.next();
      if (done) return;
      left -= value.length;
    }
  } catch {
    // Nobody is left who could be answered.
  }
}

interface Head {
  bytes: Buffer;
  ended: boolean;
}

/** Reads until the body ends, or is longer than `limit`. */
async function readUpTo(parts: AsyncIterator<Buffer>, limit: number): Promise<Head> {
  const read: Buffer[] = [];
  let length = 0;
  for (;;) {
    const { value, done } = await parts.next();
    if (done) return { bytes: join(read), ended: true };
    read.push(value);
    length += value.length;
    if (length > limit) return { bytes: join(read), ended: false };
  }
}

const join = (parts: readonly Buffer[]): Buffer => (parts.length === 1 ? parts[0]! : Buffer.concat(parts));

/** Stages the head and all that follows. */
async function stageRest(
  { database }: ImportContext,
  staged: StagedImport,
  head: Buffer,
  parts: AsyncIterator<Buffer>,
): Promise<void> {
  let total = 0;
  let position = 0;
  let pending = head;
  for (let ended = false; !ended; ) {
    const next = await readUpTo(parts, CHUNK_BYTES - pending.length);
    ended = next.ended;
    const chunk = pending.length === 0 ? next.bytes : Buffer.concat([pending, next.bytes]);
    pending = Buffer.alloc(0);
    total += chunk.length;
    if (total > IMPORT_BODY_BYTES) throw tooLarge();
    if (chunk.length === 0) break;
    if (!(await stageChunk(database, staged, position, chunk))) throw unavailable('the import was cancelled');
    // The driver copies it once more.
    releaseBytes(2 * chunk.length);
    position += 1;
  }
}
