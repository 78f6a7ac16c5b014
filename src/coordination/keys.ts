/** Every name that the service uses in Redis. */
export interface RedisKeys {
  /** Returns the prefix of a limiter's Redis keys. It contains the limiter's `keyPart` (`windows.ts`). */
  limit(keyPart: string): string;
  /** The channel on which replicas publish notifications. */
  wakes: string;
  /** Returns the channel of one replica's heartbeats. */
  beats(instanceId: string): string;
  /** The prefix of BullMQ's keys. Its braces keep all keys of a queue on one node of a cluster. */
  importsPrefix: string;
  importsQueue: string;
  /**
   * Returns the key of an index: a sorted set that lists the pending values of one kind. The key of each value begins
   * with the key of the index. The braces keep all keys of a kind on one node of a cluster.
   */
  pending(kind: string): string;
  /** The prefix of keys that are written only to test whether Redis accepts writes. */
  probe: string;
}

/** Returns the names for one deployment. `prefix` separates deployments that share a Redis. */
export function nameKeys(prefix: string): RedisKeys {
  return {
    limit: (keyPart) => `${prefix}:limit:${keyPart}`,
    wakes: `${prefix}:wakes`,
    beats: (instanceId) => `${prefix}:wakes:${instanceId}`,
    importsPrefix: `{${prefix}}`,
    importsQueue: 'imports',
    pending: (kind) => `{${prefix}:pending}:${kind}`,
    probe: `${prefix}:probe`,
  };
}

/** Returns the Redis key of a pending value. `index` is what `RedisKeys.pending` returns for the value's kind. */
export const namePending = (index: string, key: string): string => `${index}:${key}`;

/**
 * Returns the Redis key that counts the requests of `key`. `prefix` is what `RedisKeys.limit` returns for the limiter.
 */
export const nameLimited = (prefix: string, key: string): string => `${prefix}:${key}`;

/** Returns a key for a test write, on the node of a cluster that stores `failedKey`. `prefix` is `RedisKeys.probe`. */
export function nameProbe(prefix: string, failedKey: string): string {
  // A cluster chooses the node by the text in braces, or by the whole key if it has no braces.
  const hashTag = /\{[^}]+\}/.exec(failedKey)?.[0] ?? `{${failedKey}}`;
  return `${prefix}:${hashTag}`;
}
