import type { RedisAccess } from '../../src/coordination/port.ts';
import { parseRedisAddress } from '../../src/coordination/redis/address.ts';

/** Returns the settings with which the service reaches a Redis. `prefix` separates tests that share a Redis. */
export const accessTo = (url: string, prefix: string, more: Partial<RedisAccess> = {}): RedisAccess => ({
  address: parseRedisAddress(url)!,
  prefix,
  ...more,
});
