import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import { notFound } from '../../domain/errors.ts';
import { html } from '../../sign-in/html.ts';
import {
  formatServiceWorker,
  ICONS,
  MANIFEST,
  MANIFEST_PATH,
  SERVICE_WORKER_PATH,
  TOUCH_ICON,
} from './app-files.ts';
import { findAssets } from './assets.ts';
import type { Asset, Assets } from './build-assets.ts';

/**
 * Serves the page to browsers: HTML documents, and their files below `/assets/`. The documents are the same for
 * everybody. Their scripts find out who is signed in.
 */

/** The names of the pages, keyed by the paths of their documents. Each document loads the module of its page. */
const PAGES: Record<string, string> = { '/': 'bookmarks', '/settings': 'settings', '/save': 'save' };

/**
 * All content comes from this origin, no script or style is inline, and scripts can insert text but not HTML. The only
 * trusted-types policy allows the page's own workers.
 */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types worker',
].join('; ');

const HEADERS = {
  'content-security-policy': SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  vary: 'accept-encoding',
};

/**
 * A script that applies the user's theme and row height before the browser draws anything. It also reloads the document
 * after a pause if a module fails to load. Such a failure happens during a rollout, when one replica sends a document
 * and another replica does not have the document's modules. The address of this script has no hash, so replicas of
 * every version serve it.
 */
const START = `'use strict';
for (const choice of ['theme', 'rows']) document.documentElement.dataset[choice] = localStorage.getItem(choice) ?? '';
const key = 'reloads';
const reload = () => {
  const count = Number(sessionStorage.getItem(key) ?? 0);
  if (count >= 8) return;
  sessionStorage.setItem(key, String(count + 1));
  setTimeout(() => location.reload(), 250 * 2 ** count);
};
addEventListener('error', ({ target }) => { if (target instanceof HTMLElement) reload(); }, true);
addEventListener('load', () => { if (document.body.dataset.started === 'yes') sessionStorage.removeItem(key); });
`;

const START_PATH = '/assets/start.js';

/** What the scripts need to know about the service. */
interface Facts {
  /** The name of the sign-in provider. Undefined if there is none. */
  provider: string | undefined;
  trashDays: number;
}

/** Returns the elements that tell the scripts the facts about the service. */
const formatFacts = ({ provider, trashDays }: Facts): string =>
  html`${provider === undefined ? undefined : html`\n<meta name="provider" content="${provider}">`}
<meta name="trash-days" content="${String(trashDays)}">`.text;

/** Returns the HTML document of a page. */
function formatDocument({ hash, modules }: Assets, page: string, facts: Facts): string {
  const address = (path: string) => `/assets/${hash}/${path}`;
  const [ownModule, ...otherModules] = modules.get(page) ?? [];
  if (ownModule === undefined) throw new Error(`the page ${page} has no module`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">${formatFacts(facts)}
<title>Bookmarks</title>
<link rel="icon" href="${address('web/icon.svg')}" type="image/svg+xml">
<link rel="apple-touch-icon" href="${TOUCH_ICON}">
<link rel="manifest" href="${MANIFEST_PATH}">
<script src="${START_PATH}"></script>
<link rel="stylesheet" href="${address('web/styles.css')}">
${otherModules.map((path) => `<link rel="modulepreload" href="${address(path)}">`).join('\n')}
<script type="module" src="${address(ownModule)}"></script>
</head>
<body data-page="${page}">
<noscript>This page needs JavaScript. You can also use the service from the command line or through its API.</noscript>
</body>
</html>
`;
}

/** Content that may change while its address stays the same. */
interface Revalidated {
  type: string;
  /** All responses share this buffer. A string would be encoded again for each response. */
  bytes: Buffer;
  etag: string;
}

const revalidated = (type: string, content: string | Buffer): Revalidated => ({
  type,
  bytes: Buffer.from(content),
  etag: `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`,
});

/** Adds the page's documents and its files. Browsers revalidate the documents at each visit, and keep the files. */
export function pageRoutes(app: FastifyInstance, { signIn, trashDays }: Config): void {
  for (const [path, page] of Object.entries(PAGES)) {
    const makeDocument = async () => {
      const provider = app.hasRoute({ method: 'GET', url: '/login' }) ? signIn.provider?.name : undefined;
      return revalidated(
        'text/html; charset=utf-8',
        formatDocument(await findAssets(), page, { provider, trashDays }),
      );
    };
    // The document is formatted and hashed once, because anybody may request it thousands of times a second.
    let document: Revalidated | undefined;
    app.get(path, async (request, reply) => {
      document ??= await makeDocument();
      return sendRevalidated(request, reply, document);
    });
  }
  const fixedContents: [path: string, content: Revalidated][] = [
    [START_PATH, revalidated('text/javascript; charset=utf-8', START)],
    [MANIFEST_PATH, revalidated('application/manifest+json', MANIFEST)],
    ...[...ICONS].map(([path, png]): [string, Revalidated] => [path, revalidated('image/png', png)]),
  ];
  for (const [path, content] of fixedContents)
    app.get(path, async (request, reply) => sendRevalidated(request, reply, content));
  let serviceWorker: Revalidated | undefined;
  app.get(SERVICE_WORKER_PATH, async (request, reply) => {
    serviceWorker ??= revalidated(
      'text/javascript; charset=utf-8',
      formatServiceWorker(await findAssets(), Object.keys(PAGES)),
    );
    return sendRevalidated(request, reply, serviceWorker);
  });
  app.get<{ Params: { hash: string; '*': string } }>('/assets/:hash/*', async (request, reply) => {
    const { hash, '*': path } = request.params;
    const assets = await findAssets();
    const asset = hash === assets.hash ? assets.files.get(path) : undefined;
    if (asset === undefined) throw notFound('the path');
    return sendAsset(request, reply, asset);
  });
}

/** Sends content that may change. The browser revalidates it before each use. */
function sendRevalidated(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, bytes, etag }: Revalidated,
): FastifyReply {
  reply.headers({ ...HEADERS, 'cache-control': 'no-cache', 'content-type': type, etag });
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(bytes);
}

/** Sends a file. Browsers may keep it for a year, because changed files get a new address. */
function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  const encoding = (['br', 'gzip'] as const).find((name) => new RegExp(`\\b${name}\\b`).test(accepted));
  reply.headers({
    ...HEADERS,
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': asset.type,
    ...(encoding && { 'content-encoding': encoding }),
  });
  // This buffer shares the bytes of the asset and does not copy them.
  const { buffer, byteOffset, byteLength } = asset[encoding ?? 'raw'];
  return reply.send(Buffer.from(buffer, byteOffset, byteLength));
}
