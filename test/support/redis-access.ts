import type { RedisAccess } from '../../src/coordination/port.ts';
import { parseRedisAddress } from '../../src/coordination/redis-address.ts';

/** The way to a Redis as the service is told it; `prefix` keeps tests that share a Redis apart. */
export const accessTo = (url: string, prefix: string, more: Partial<RedisAccess> = {}): RedisAccess => ({
  address: parseRedisAddress(url)!,
  prefix,
  ...more,
});
