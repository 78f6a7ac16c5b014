import { isProbe } from './health.ts';

/**
 * The paths that clients outside of the cluster use. A gateway must route all of them to the service. `npm run
 * k8s:check` compares the manifests with this list.
 */
export const PUBLIC_PATHS = {
  exact: ['/', '/settings', '/save', '/openapi.json', '/manifest.webmanifest', '/service-worker.js'],
  /** Each of these paths, and all paths below it. */
  below: ['/api/v1', '/web', '/docs', '/assets', '/login', '/mcp', '/compat/linkding'],
} as const;

/** Throws if a route is neither in `PUBLIC_PATHS` nor an endpoint for the platform, because a gateway would lack it. */
export function requireListed(route: string): void {
  const { exact, below } = PUBLIC_PATHS;
  const isListed =
    exact.some((path) => path === route) ||
    below.some((path) => route === path || route.startsWith(`${path}/`));
  if (!isListed && !isProbe(route)) throw new Error(`${route} is missing in PUBLIC_PATHS`);
}
