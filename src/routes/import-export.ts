import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { BOUNDS } from '../domain/bounds.ts';
import { invalid, unavailable } from '../domain/errors.ts';
import type { Principal } from '../domain/tokens.ts';
import { longestImport } from '../domain/waits.ts';
import { streamResponse } from '../http/backlog.ts';
import { type Bodies, readIdempotencyKey } from '../http/bodies.ts';
import { longestExport } from '../http/client-timeouts.ts';
import { principalRoute } from '../http/route.ts';
import type { Pages } from '../http/streamed-pages.ts';
import { importBody } from '../imports/entries.ts';
import type { ImportBody } from '../imports/receive.ts';
import { answerImport } from '../imports/request.ts';
import { OutcomeUnknown } from '../imports/response.ts';
import type { Database } from '../store/driver/database.ts';
import { beginExport, readExportPage } from '../store/export.ts';
import * as schemas from './response-schemas.ts';

/** Import and export: docs/contract.md, section 4.4. */

const exportAll = principalRoute({
  path: '/export',
  scope: 'read',
  longestSeconds: longestExport,
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
  handle: ({ context, principal, request }) =>
    streamResponse(context, request, exportPages(context.database, principal)),
});

/** How many bookmarks one statement reads. */
const EXPORT_PAGE_SIZE = 500;

/**
 * Yields the pages of an export of all bookmarks (docs/contract.md, decision 17). Throws `INVALID_TOKEN` if the token
 * was revoked, and `UNAVAILABLE` if the bookmarks were replaced since the first page.
 */
async function* exportPages(database: Database, principal: Principal): Pages {
  const bounds = await beginExport(database, principal);
  let beginning = '{"bookmarks":[';
  let count = 0;
  for (let afterId = 0; afterId < bounds.lastId; ) {
    const page = await readExportPage(database, principal, afterId, bounds, EXPORT_PAGE_SIZE);
    if (page.generation !== bounds.generation)
      throw unavailable('the bookmarks were replaced during the export');
    if (page.lastId === null) break;
    yield [beginning, page.bookmarks];
    beginning = ',';
    count += page.count;
    afterId = page.lastId;
  }
  const end = `],"exported_at":"${bounds.exportedAt}","count":${count}}`;
  yield [count === 0 ? beginning + end : end];
}

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
  longestSeconds: longestImport,
  bodyLimit: BOUNDS.importBytes,
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
  async handle({ context, principal, request, reply }) {
    if (request.body === undefined) throw invalid('body: is required');
    const announced = request.headers['content-length'];
    try {
      return await answerImport(context, principal, {
        body: request.body as ImportBody,
        announcedBytes: announced === undefined ? undefined : Number(announced),
        idempotencyKey: readIdempotencyKey(request),
        hasClient: () => !reply.raw.destroyed,
      });
    } catch (error) {
      // Fastify closes a connection for a body that a parser has refused. For this body, the handler does it.
      if (!request.raw.complete) reply.header('connection', 'close');
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

/** Lets the handler of `/import` read the body itself, so that only a small part of a large body is in memory at a time. */
export function addImportParser(scope: FastifyInstance, context: Context, bodies: Bodies): void {
  scope.removeAllContentTypeParsers();
  // A body of up to `importInlineBytes` stays in memory until the response. A longer body is written to Postgres.
  scope.addContentTypeParser('application/json', async (request: FastifyRequest) =>
    bodies.source(request, context.config.importInlineBytes),
  );
}

export const exportRoutes = [exportAll];
export const importRoutes = [importAll];
