import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { invalid } from '../domain/errors.ts';
import type { Bodies } from '../http/bodies.ts';
import { hashKeyedRequest } from '../http/idempotency.ts';
import { principalRoute } from '../http/route.ts';
import { exportBookmarks } from '../operations/export.ts';
import { importBody } from '../operations/import/entries.ts';
import { IMPORT_BODY_BYTES, type ReceivedImport, receiveImport } from '../operations/import/receive.ts';
import { importInline, importStaged } from '../operations/import/request.ts';
import { OutcomeUnknown } from '../operations/import/response.ts';
import * as schemas from './response-schemas.ts';

/** Import and export: spec 4.4. */

const exportAll = principalRoute({
  path: '/export',
  scope: 'read',
  summary: 'Export all bookmarks',
  description:
    'Streams, by id, rising. Each bookmark that was there from start to end is in it once. Where it cannot go on, the ' +
    'answer breaks off: it never ends as shorter, valid JSON.',
  body: z.object({}),
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    exported_at: schemas.timestampText,
    count: schemas.count,
  }),
  takesOwnPermits: true,
  async handle({ context, principal, request }) {
    const { database, requestPermits, outboundBacklog, config } = context;
    // By then whoever takes nothing has lost the connection.
    const waitMs = (config.responseStallSeconds + 5) * 1_000;
    const stream = await exportBookmarks({ database, requestPermits, outboundBacklog, waitMs }, principal);
    return stream.once('error', () => {
      request.wasBrokenOff = true;
    });
  },
});

const importAll = principalRoute({
  path: '/import',
  scope: 'write',
  summary: 'Import bookmarks',
  description:
    'One transaction. `merge` skips an entry whose url is there already, `replace` puts the array in the place of all ' +
    'bookmarks. Takes what export gives. An import that is answered with 503 has not happened and never will.',
  body: importBody,
  checksOwnBody: true,
  isHeld: true,
  isIdempotent: true,
  bodyLimit: IMPORT_BODY_BYTES,
  response: z.object({
    imported: schemas.count,
    skipped: schemas.count,
    errors: z.array(
      z
        .object({
          index: schemas.count,
          url: z
            .string()
            .nullable()
            .meta({ examples: ['javascript:void(0)'] }),
          code: z.literal('VALIDATION_ERROR'),
          error: z.string().meta({ examples: ['url: expected an http or https url'] }),
        })
        .meta({ id: 'ImportError' }),
    ),
  }),
  errors: ['LIMIT_EXCEEDED'],
  async handle({ context, principal, request, reply, idempotency }) {
    const received = request.body as ReceivedImport | undefined;
    if (received === undefined) throw invalid('body: is required');
    const hasClient = () => !reply.raw.destroyed;
    try {
      return Buffer.isBuffer(received)
        ? await importInline(context, principal, received, idempotency)
        : await importStaged(context, principal, received, hasClient, idempotency);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      request.log.error({ err: error }, 'import left without an answer');
      request.wasBrokenOff = true;
      reply.hijack();
      reply.raw.destroy();
      return '';
    }
  },
});

/** Lets `/import` read its own body: of a large one the replica that receives it holds a part at a time. */
export function addImportParser(scope: FastifyInstance, context: Context, bodies: Bodies): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const announced = request.headers['content-length'];
    const requestHash = hashKeyedRequest(request);
    // What comes later goes on to Postgres.
    const body = bodies.source(request, context.config.importInlineBytes);
    const received = await receiveImport(context, request.principal!, body, {
      announcedBytes: announced === undefined ? undefined : Number(announced),
      idempotencyKey: requestHash && String(request.headers['idempotency-key']),
      requestHash,
    });
    request.requestHash = requestHash?.digest();
    return received;
  });
}

export const exportRoutes = [exportAll];
export const importRoutes = [importAll];
