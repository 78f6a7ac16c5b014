import { isIP, isIPv6 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Quota } from '../coordination/port.ts';
import { type ApiError, rateLimited } from '../domain/errors.ts';

/** Returns the value of `Retry-After`: whole seconds, rounded up, at least 1. */
const retryAfterSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** Sets the rate-limit headers of a token or a client address (docs/contract.md, section 8, decision 26). */
export function setQuotaHeaders(reply: FastifyReply, { limit, remaining, resetMs }: Quota): void {
  reply.header('x-ratelimit-limit', limit);
  reply.header('x-ratelimit-remaining', remaining);
  reply.header('x-ratelimit-reset', Math.ceil((Date.now() + resetMs) / 1000));
}

/** Sets the rate-limit headers. Throws `RATE_LIMITED` for a refused request. */
export function requireQuota(reply: FastifyReply, quota: Quota, message: string): void {
  setQuotaHeaders(reply, quota);
  if (!quota.admitted) throw refuse(reply.request, quota, message);
}

/** Returns the error for a request that a limiter refused. */
export function refuse(request: FastifyRequest, { resetMs, isRepeated }: Quota, message: string): ApiError {
  request.isRepeatedRefusal = isRepeated === true;
  return rateLimited(retryAfterSeconds(resetMs), message);
}

/** Removes the rate-limit headers, which a response to an invalid token must not have. */
export function removeQuotaHeaders(reply: FastifyReply): void {
  for (const name of ['limit', 'remaining', 'reset']) reply.removeHeader(`x-ratelimit-${name}`);
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
export const addressKey = (ip: string): string => networkOf(ip, { ipv4Bytes: 4, ipv6Groups: 4 });

/** Returns the key of the client's network (docs/contract.md, decision 42): an IPv4 /24 or an IPv6 /48. */
export const networkKey = (ip: string): string => networkOf(ip, { ipv4Bytes: 3, ipv6Groups: 3 });

/** Returns the first bytes of an IPv4 address, or the first groups of an IPv6 address. */
function networkOf(ip: string, { ipv4Bytes, ipv6Groups }: { ipv4Bytes: number; ipv6Groups: number }): string {
  if (!isIPv6(ip)) return ip.split('.').slice(0, ipv4Bytes).join('.');
  const groups = expandIpv6(ip);
  const isMappedIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  if (!isMappedIpv4) return `${groups.slice(0, ipv6Groups).join(':')}::`;
  // Each of the last two groups holds two bytes of the IPv4 address.
  const bytes = groups.slice(6).flatMap((group) => [Number(`0x${group}`) >> 8, Number(`0x${group}`) & 255]);
  return bytes.slice(0, ipv4Bytes).join('.');
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
