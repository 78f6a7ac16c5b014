import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll } from 'vitest';

/** A server that serves an empty page. Each server has its own origin. */
export interface PageServer {
  readonly origin: string;
}

const CLIENT = join(import.meta.dirname, '../../src/client/index.ts');
let bundled: Promise<string> | undefined;

/** Bundles the client's source into one module for browsers. */
async function bundleClient(): Promise<string> {
  const bundle = await rolldown({ input: CLIENT, platform: 'browser' });
  const { output } = await bundle.generate();
  await bundle.close();
  return output[0].code;
}

/**
 * Serves an empty page at `/` and the client at `/client.js`, for all tests of a file. `handle` responds to all other
 * requests.
 */
export function usePageServer(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void> = async (_, response) => {
    response.writeHead(404).end();
  },
): PageServer {
  const pages = { origin: '' };
  const server = createServer(async (request, response) => {
    if (request.url === '/') response.setHeader('content-type', 'text/html').end('<!doctype html>');
    else if (request.url === '/client.js') {
      bundled ??= bundleClient();
      response.setHeader('content-type', 'text/javascript').end(await bundled);
    } else await handle(request, response);
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    pages.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return pages;
}
