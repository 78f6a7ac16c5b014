import type { RedisAccess } from '../../src/coordination/port.ts';
import { parseRedisAddress } from '../../src/coordination/redis-address.ts';

/** How to reach a Redis, as the service is configured. `prefix` separates tests that share a Redis. */
export const accessTo = (url: string, prefix: string, more: Partial<RedisAccess> = {}): RedisAccess => ({
  address: parseRedisAddress(url)!,
  prefix,
  ...more,
});
