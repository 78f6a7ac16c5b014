import { isIP, isIPv6 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Quota } from '../coordination/port.ts';
import { rateLimited } from '../domain/errors.ts';

/** The limit that the rate-limit headers describe. */
type QuotaScope = 'token' | 'account' | 'address';

const REFUSALS: Record<QuotaScope, string> = {
  token: 'too many requests with this token',
  account: 'too many requests of this account, across all its tokens',
  address: 'too many requests from this address',
};

/** Returns the value of `Retry-After`: whole seconds, rounded up, at least 1. */
export const retryAfterSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/**
 * Sets the four rate-limit headers (docs/contract.md, section 8, decision 26). Throws `RATE_LIMITED` for a refused
 * request.
 */
export function requireQuota(
  reply: FastifyReply,
  quota: Quota,
  ownScope: 'token' | 'address' = 'token',
): void {
  const scope: QuotaScope = quota.ofGroup ? 'account' : ownScope;
  reply.header('x-ratelimit-limit', quota.limit);
  reply.header('x-ratelimit-remaining', quota.remaining);
  reply.header('x-ratelimit-reset', Math.ceil((Date.now() + quota.resetMs) / 1000));
  reply.header('x-ratelimit-scope', scope);
  if (!quota.admitted) throw rateLimited(retryAfterSeconds(quota.resetMs), REFUSALS[scope]);
}

/** Removes the rate-limit headers, which a response to an invalid token must not have. */
export function removeQuotaHeaders(reply: FastifyReply): void {
  for (const name of ['limit', 'remaining', 'reset', 'scope']) reply.removeHeader(`x-ratelimit-${name}`);
}

/**
 * Returns the client's address as the trusted proxies report it. If that is no IP address, returns the peer's address.
 */
export const clientAddress = ({ ip, socket }: FastifyRequest): string =>
  isIP(ip) > 0 ? ip : (socket.remoteAddress ?? '');

/**
 * Returns the limiter's key for a client address (docs/contract.md, decision 25). The key of an IPv4 address is the
 * address itself, even if it is written as an IPv6 address. The key of any other IPv6 address is its /64 network.
 */
export function addressKey(ip: string): string {
  if (!isIPv6(ip)) return ip;
  const groups = expandIpv6(ip);
  const isMappedIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  if (!isMappedIpv4) return `${groups.slice(0, 4).join(':')}::/64`;
  // Each of the last two groups holds two bytes of the IPv4 address.
  const bytes = groups.slice(6).flatMap((group) => [Number(`0x${group}`) >> 8, Number(`0x${group}`) & 255]);
  return bytes.join('.');
}

/** Returns the eight groups of an IPv6 address. */
function expandIpv6(ip: string): string[] {
  // `URL` converts each address to one canonical form. It does not accept a zone such as `%eth0`, so the zone is cut.
  const canonical = new URL(`http://[${ip.split('%')[0]}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const leftGroups = head === '' ? [] : head.split(':');
  if (tail === undefined) return leftGroups;
  const rightGroups = tail === '' ? [] : tail.split(':');
  // `::` stands for the missing groups, which are all 0.
  const missing = 8 - leftGroups.length - rightGroups.length;
  return [...leftGroups, ...Array<string>(missing).fill('0'), ...rightGroups];
}
