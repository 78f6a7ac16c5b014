import { readFileSync } from 'node:fs';
import type { Assets } from './build-assets.ts';

/** What makes the page an app: a manifest, icons, and the service worker that shows the page offline. */

const ICON_SIZES = [180, 192, 512] as const;

/** The icons as PNG, keyed by their paths. */
export const ICONS: ReadonlyMap<string, Buffer> = new Map(
  ICON_SIZES.map((size) => [
    `/assets/icon-${size}.png`,
    readFileSync(new URL(`../../web/icon-${size}.png`, import.meta.url)),
  ]),
);

/** The home-screen icon on iOS, which ignores the manifest. */
export const TOUCH_ICON = '/assets/icon-180.png';

export const MANIFEST_PATH = '/manifest.webmanifest';

const icon = (size: number, purpose: string) => ({
  src: `/assets/icon-${size}.png`,
  sizes: `${size}x${size}`,
  type: 'image/png',
  purpose,
});

/** The web app manifest. Android's share menu opens `/save`. */
export const MANIFEST = JSON.stringify({
  id: '/',
  name: 'Bookmarks',
  short_name: 'Bookmarks',
  start_url: '/',
  scope: '/',
  display: 'standalone',
  background_color: '#ffffff',
  theme_color: '#2f5bd0',
  icons: [icon(192, 'any'), icon(512, 'any'), icon(512, 'maskable')],
  share_target: {
    action: '/save',
    method: 'GET',
    params: { title: 'title', text: 'text', url: 'url' },
  },
});

/** This path is at the root, because a service worker controls only paths below its own folder. */
export const SERVICE_WORKER_PATH = '/service-worker.js';

/**
 * Whether the service worker keeps a file for use offline. Parsers of import files are left out, because an import
 * needs the network anyway.
 */
const isKept = (path: string): boolean => !path.startsWith('lib/') && !path.startsWith('formats/');

/**
 * Returns the script of the service worker for one version of the page. The service worker caches the page's documents
 * and files, which are the same for everybody. It does not handle requests to the API or requests for signing in.
 *
 * The browser installs a new service worker while the old one still serves. The new one takes over when the last tab of
 * the old version closes. Until then, each tab finds the files of its own version. The service worker gets documents
 * from the network, and from its cache only if there is no network.
 */
export function formatServiceWorker({ hash, files }: Assets, documents: readonly string[]): string {
  const keptPaths = [...files.keys()].filter(isKept).map((path) => `/assets/${hash}/${path}`);
  const shell = [...documents, '/assets/start.js', MANIFEST_PATH, ...keptPaths];
  return `'use strict';
const CACHE = 'page-${hash}';
const SHELL = ${JSON.stringify(shell)};
const DOCUMENTS = ${JSON.stringify(documents)};

addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)));
});
addEventListener('activate', (event) => {
  event.waitUntil(caches.keys().then((names) =>
    Promise.all(names.filter((name) => name.startsWith('page-') && name !== CACHE).map((name) => caches.delete(name)))));
});

const findKept = async (path) => (await caches.open(CACHE)).match(path);
const preferNetwork = (request, path) =>
  fetch(request).catch(async (error) => {
    const kept = await findKept(path);
    if (kept === undefined) throw error;
    return kept;
  });
const preferKept = async (request, path) => (await findKept(path)) ?? fetch(request);

addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== location.origin || !SHELL.includes(pathname)) return;
  const isHashed = pathname.startsWith('/assets/${hash}/');
  if (isHashed) event.respondWith(preferKept(request, pathname));
  else if (request.mode === 'navigate' || !DOCUMENTS.includes(pathname))
    event.respondWith(preferNetwork(request, pathname));
});
`;
}
