import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
// biome-ignore lint/style/noRestrictedImports: finds the files of swagger-ui-dist
import { createRequire } from 'node:module';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';
import { describeApi } from './openapi.ts';
import type { Route } from './route.ts';

/** The API reference: `/openapi.json`, and `/docs` to browse it. */

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Bookmark Service API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <link rel="icon" href="/docs/favicon-32x32.png">
  </head>
  <body>
    <div id="reference"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true });
`;

/** Swagger UI needs inline images and inline styles. All other content comes from this origin. */
const SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";

const TYPE_BY_FILE = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** Adds `/openapi.json`, which describes the routes below `basePath`, and `/docs`. */
export function referenceRoutes(
  app: FastifyInstance,
  routes: readonly Route[],
  basePath: string,
  config: Config,
): void {
  // All responses share this buffer. A string would be copied for each client that does not read its response.
  const document = Buffer.from(JSON.stringify(describeApi(routes, basePath, config)));
  const { resolve } = createRequire(import.meta.url);
  const serve = (url: string, type: string, read: () => string | Buffer) =>
    app.get(url, (_request, reply) =>
      reply.header('content-type', type).header('content-security-policy', SECURITY_POLICY).send(read()),
    );
  const etag = `"${createHash('sha256').update(document).digest('base64url')}"`;
  app.get('/openapi.json', (request, reply) => {
    reply.headers({ 'content-security-policy': SECURITY_POLICY, 'cache-control': 'no-cache', etag });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(document);
  });
  serve('/docs', 'text/html; charset=utf-8', () => PAGE);
  serve('/docs/start.js', 'text/javascript; charset=utf-8', () => START);
  for (const [file, type] of Object.entries(TYPE_BY_FILE)) {
    let content: Buffer | undefined;
    serve(`/docs/${file}`, type, () => {
      content ??= readFileSync(resolve(`swagger-ui-dist/${file}`));
      return content;
    });
  }
}
