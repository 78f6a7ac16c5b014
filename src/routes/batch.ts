import { z } from 'zod';
import { notifyChangesPolls, notifyPolls } from '../coordination/channels.ts';
import type { Notifier } from '../coordination/port.ts';
import { bookmarkChange } from '../domain/bookmark-schemas.ts';
import { ApiError, invalid } from '../domain/errors.ts';
import { BOUNDS, id, timestamp } from '../domain/fields.ts';
import { keyRequest, parseIdempotencyKey } from '../domain/idempotency.ts';
import type { BatchOperation, ErrorCode } from '../domain/resources.ts';
import { parseBody } from '../domain/validation.ts';
import { STATUS_BY_CODE } from '../http/error-responses.ts';
import { principalRoute } from '../http/route.ts';
import { atPlace, type BatchWrite, type Written, writeBatch } from '../store/batch.ts';
import { trashLimitOf } from '../store/trash.ts';
import { addBody } from './bookmarks.ts';
import { notifyAfter } from './notify-after.ts';
import * as schemas from './response-schemas.ts';

/** Several writes in one request: docs/contract.md, section 4.2. */

const editBody = z.object({ id, if_updated_at: timestamp.optional(), ...bookmarkChange.shape });
const deleteBody = z.object({
  id,
  if_updated_at: timestamp.optional(),
  trash: z.boolean().default(false),
});

/** Fields of the requests for several bookmarks. In a batch, each bookmark has an operation of its own. */
const FIELDS_OF_SEVERAL = ['ids', 'items', 'add_tags', 'remove_tags'];

/**
 * Reads an operation. Its parsed fields, without those that are absent, equal those of the request that does the same
 * alone. So its key has the same hash. Throws `VALIDATION_ERROR`.
 */
function readOperation(given: unknown): BatchWrite {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid('expected an object');
  const { do: kind, key, ...fields } = given as Record<string, unknown>;
  const read = <Fields extends object>(path: string, parsed: Fields) => ({
    ...parsed,
    idempotency: key == null ? undefined : keyRequest(parseIdempotencyKey(key, 'key'), path, parsed),
  });
  const several = kind !== 'add' && FIELDS_OF_SEVERAL.find((name) => fields[name] != null);
  if (several) throw invalid(`${several}: cannot be given in a batch`);
  if (kind === 'add') return { do: kind, ...read('/bookmarks/add', parseBody(addBody, fields)) };
  if (kind === 'edit') return { do: kind, ...read('/bookmarks/edit', parseBody(editBody, fields)) };
  if (kind === 'delete') return { do: kind, ...read('/bookmarks/delete', parseBody(deleteBody, fields)) };
  throw invalid('do: expected "add" or "edit" or "delete"');
}

/** Reads an operation. Returns the error for which it is refused if it is malformed. */
function tryReadOperation(given: unknown): BatchWrite | ApiError {
  try {
    return readOperation(given);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Each tag of a write costs time, and a statement has a limit of time. Throws `VALIDATION_ERROR` if there are too many. */
function requireFewTags(operations: readonly (BatchWrite | ApiError)[]): void {
  const counts = operations.map((each) => ('tags' in each ? (each.tags?.names.length ?? 0) : 0));
  if (counts.reduce((sum, count) => sum + count, 0) > BOUNDS.tagsPerBatch)
    throw invalid(`operations: at most ${BOUNDS.tagsPerBatch} tags in all`);
}

const isRefusal = (result: unknown): result is ApiError => result instanceof ApiError;

const key = z
  .string()
  .min(1)
  .max(BOUNDS.idempotencyKey)
  .meta({ examples: ['5d2f7a0e-add-1'] })
  .optional();

const batch = principalRoute({
  path: '/bookmarks/batch',
  scope: 'write',
  summary: 'Add, edit and delete up to 500 bookmarks in one request',
  description:
    'The operations run in order, each as if it were sent alone. `results` has the response or the error of each. A ' +
    'refused operation changes nothing and does not stop the others. With `atomic: true`, all operations happen or ' +
    "none, and the first refusal is the response's error. `key` is the operation's Idempotency-Key, and means the same " +
    'alone and in any batch. The header Idempotency-Key is refused. One batch of an account runs at a time. For a ' +
    'first upload, use `/import`.',
  body: z.object({
    operations: z
      .array(z.custom<BatchOperation>())
      .min(1, 'may not be empty')
      .max(BOUNDS.operationsPerBatch, `at most ${BOUNDS.operationsPerBatch} operations`),
    atomic: z.boolean().default(false),
  }),
  describedBody: z.object({
    operations: z
      .array(
        z.union([
          z.object({ do: z.literal('add'), key, ...addBody.shape }).meta({ id: 'AddOperation' }),
          z.object({ do: z.literal('edit'), key, ...editBody.shape }).meta({ id: 'EditOperation' }),
          z.object({ do: z.literal('delete'), key, ...deleteBody.shape }).meta({ id: 'DeleteOperation' }),
        ]),
      )
      .min(1)
      .max(BOUNDS.operationsPerBatch),
    atomic: z.boolean().default(false),
  }),
  bodyLimit: BOUNDS.batchBytes,
  response: z.object({
    results: z.array(
      z.union([
        schemas.bookmark,
        schemas.editedBookmark,
        schemas.deletedBookmark,
        z
          .object({
            error: z.string().meta({ examples: ['the bookmark does not exist'] }),
            code: z.enum(Object.keys(STATUS_BY_CODE) as ErrorCode[]),
          })
          .meta({ id: 'Refusal' }),
      ]),
    ),
  }),
  errors: ['NOT_FOUND', 'CONFLICT', 'LIMIT_EXCEEDED'],
  async handle({ context, principal, request, body: { operations, atomic } }) {
    const { database, batchPermits, config } = context;
    if (request.headers['idempotency-key'] !== undefined)
      throw invalid('Idempotency-Key: give each operation a key of its own');
    const read = operations.map(tryReadOperation);
    requireFewTags(read);
    const firstRefused = read.findIndex(isRefusal);
    if (atomic && firstRefused >= 0) throw atPlace(firstRefused, read[firstRefused] as ApiError);
    const writes = read.filter((each): each is BatchWrite => !isRefusal(each));
    const options = {
      isAtomic: atomic,
      freeBookmarkLimit: config.freeBookmarkLimit,
      trashLimit: trashLimitOf(config),
    };
    let written: (Written | ApiError)[] | undefined;
    // As after single requests, operations that changed nothing notify nobody. Without a response, everything may have
    // happened.
    const notify = (notifier: Notifier, userId: number) => {
      const happened = writes.filter((_, n) => {
        const result = written?.[n];
        return result === undefined || !(isRefusal(result) || result.existed);
      });
      if (happened.some((write) => write.do === 'add')) notifyPolls(notifier, userId);
      else if (happened.length > 0) notifyChangesPolls(notifier, userId);
    };
    const write = async () => {
      written = await writeBatch(database, principal, writes, options);
      return written;
    };
    const done = await batchPermits.run(principal.userId, () =>
      notifyAfter(context, principal, notify, write),
    );
    const results = read.map((each) => (isRefusal(each) ? each : done.shift()!));
    const texts = results.map((each) => (isRefusal(each) ? JSON.stringify(each.body) : each.response));
    return `{"results":[${texts.join(',')}]}`;
  },
});

export const batchRoutes = [batch];
