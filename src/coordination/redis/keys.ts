/** Every name that the service uses in Redis. */
export interface RedisKeys {
  /** Returns the prefix of a limiter's Redis keys. It contains the limiter's `keyPart` (`windows.ts`). */
  window(keyPart: string): string;
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
  /** Returns the prefix of keys that are written only to test whether Redis accepts writes to a kind of keys. */
  probe(kind: string): string;
}

/** Returns the names for one deployment. `prefix` separates deployments that share a Redis. */
export function nameKeys(prefix: string): RedisKeys {
  return {
    window: (keyPart) => `${prefix}:window:${keyPart}`,
    wakes: `${prefix}:wakes`,
    beats: (instanceId) => `${prefix}:wakes:${instanceId}`,
    importsPrefix: `{${prefix}}`,
    importsQueue: 'imports',
    pending: (kind) => `{${prefix}:pending}:${kind}`,
    probe: (kind) => `${prefix}:probe:${kind}`,
  };
}

/** Returns the Redis key of a pending value. `index` is what `RedisKeys.pending` returns for the value's kind. */
export const namePending = (index: string, key: string): string => `${index}:${key}`;

/** Returns the Redis key that counts the requests of `key`. `prefix` is what `RedisKeys.window` returns. */
export const nameLimited = (prefix: string, key: string): string => `${prefix}:${key}`;

/**
 * Returns the part of a Redis key that makes a cluster store a new key on the node that stores `key`. A cluster chooses
 * the node by the text in braces, or by the whole key if it has no braces.
 */
export const nameHashTag = (key: string): string => /\{[^}]+\}/.exec(key)?.[0] ?? `{${key}}`;
