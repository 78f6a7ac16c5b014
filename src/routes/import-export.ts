import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { invalid } from '../domain/errors.ts';
import { requirePrincipal } from '../http/authentication.ts';
import { type Bodies, hashKeyedRequest } from '../http/bodies.ts';
import { principalRoute } from '../http/route.ts';
import { exportBookmarks } from '../operations/export.ts';
import { importBody } from '../operations/import/entries.ts';
import { IMPORT_BODY_BYTES, type ReceivedImport, receiveImport } from '../operations/import/receive.ts';
import { importInline, importStaged } from '../operations/import/request.ts';
import { OutcomeUnknown } from '../operations/import/response.ts';
import * as schemas from './response-schemas.ts';

/** Import and export: docs/contract.md, section 4.4. */

const exportAll = principalRoute({
  path: '/export',
  scope: 'read',
  summary: 'Export all bookmarks',
  description:
    'Streams all bookmarks in ascending order of ids. A bookmark that exists during the whole export appears exactly ' +
    'once. If the export fails, the response is aborted. An aborted response is never valid JSON.',
  body: z.object({}),
  response: z.object({
    bookmarks: z.array(schemas.bookmark),
    exported_at: schemas.timestampText,
    count: schemas.count,
  }),
  takesOwnPermits: true,
  async handle({ context, principal, request }) {
    const { database, requestPermits, outboundBacklog, config } = context;
    // The export fails if it waits longer than this to read its next page. A client that reads nothing is disconnected
    // before this time has passed.
    const waitMs = (config.responseStallSeconds + 5) * 1_000;
    const stream = await exportBookmarks({ database, requestPermits, outboundBacklog, waitMs }, principal);
    return stream.once('error', () => {
      request.wasAborted = true;
    });
  },
});

const importAll = principalRoute({
  path: '/import',
  scope: 'write',
  summary: 'Import bookmarks',
  description:
    'Runs in one transaction. `merge` skips entries whose url already exists. `replace` replaces all bookmarks with ' +
    'the array. Accepts the output of `/export`. An import that is answered with 503 has not run and never will.',
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
      // A short body was kept in memory. A longer body was stored in Postgres for a worker.
      return Buffer.isBuffer(received)
        ? await importInline(context, principal, received, idempotency)
        : await importStaged(context, principal, received, hasClient, idempotency);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      // Nobody knows whether the import has happened. So the connection is closed without a response.
      request.log.error({ err: error }, 'import ended without a response');
      request.wasAborted = true;
      reply.hijack();
      reply.raw.destroy();
      return '';
    }
  },
});

/** Adds the body parser of `/import`. This parser keeps only a small part of a large body in memory at a time. */
export function addImportParser(scope: FastifyInstance, context: Context, bodies: Bodies): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const announced = request.headers['content-length'];
    const requestHash = hashKeyedRequest(request);
    // A body of up to `importInlineBytes` stays in memory until the response. A longer body is written to Postgres.
    const body = bodies.source(request, context.config.importInlineBytes);
    const received = await receiveImport(context, requirePrincipal(request), body, {
      announcedBytes: announced === undefined ? undefined : Number(announced),
      requestHash,
    });
    request.requestHash = requestHash?.digest();
    return received;
  });
}

export const exportRoutes = [exportAll];
export const importRoutes = [importAll];
