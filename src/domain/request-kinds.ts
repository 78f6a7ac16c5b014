import type { Endpoints } from './resources.ts';

/**
 * What kind of request an endpoint takes. The routes, the API's description and the client use this list.
 *
 * - `read` and `poll` change nothing, so they are retried. The service may hold a `poll`.
 * - `keyed` may carry an `Idempotency-Key`. The client always sends one, so it is retried and the service runs it once.
 * - `batch` carries a key for each of its operations, so it is retried like `keyed`.
 * - `revocation` may carry a key too. The client sends one only if the caller passes it, because a request with a key
 *   waits for other writes of the account.
 * - `write` carries no key. A request without a key is retried only if the service has certainly not processed it.
 * - `public` is retried like a `write`. It carries no token and counts against the limit per address, not the token's
 *   quota.
 */
export type RequestKind = 'read' | 'poll' | 'keyed' | 'batch' | 'revocation' | 'write' | 'public';

/** The kind of each endpoint. The compiler reports a missing endpoint. */
export const REQUEST_KINDS: Readonly<Record<keyof Endpoints, RequestKind>> = {
  '/user/profile': 'read',
  '/auth/invite': 'public',
  '/auth/device': 'public',
  '/auth/exchange': 'public',
  '/logout': 'write',
  '/account/get': 'read',
  '/bookmarks/add': 'keyed',
  '/bookmarks/edit': 'keyed',
  '/bookmarks/delete': 'keyed',
  '/bookmarks/batch': 'batch',
  '/bookmarks/get': 'read',
  '/bookmarks/search': 'read',
  '/bookmarks/list': 'read',
  '/bookmarks/sync': 'poll',
  '/bookmarks/changes': 'poll',
  '/bookmarks/digest': 'read',
  '/trash/list': 'read',
  '/trash/restore': 'keyed',
  '/trash/delete': 'keyed',
  '/tags/list': 'read',
  '/tags/create': 'keyed',
  '/tags/update': 'keyed',
  '/tags/delete': 'keyed',
  '/tags/merge': 'keyed',
  '/export': 'read',
  '/account/delete': 'write',
  '/tokens/list': 'read',
  '/tokens/create': 'write',
  '/tokens/revoke': 'revocation',
  '/sessions/list': 'read',
  '/sessions/revoke': 'revocation',
  '/sessions/revoke-others': 'revocation',
  '/import': 'keyed',
};

/** Whether requests to a path may carry an `Idempotency-Key`. */
export const acceptsKey = (path: string): boolean => {
  const kind: RequestKind | undefined = (REQUEST_KINDS as Record<string, RequestKind | undefined>)[path];
  return kind === 'keyed' || kind === 'revocation';
};
