/** Every name that the service uses in Redis. */
export interface RedisKeys {
  /** The prefix of a limiter's Redis keys. It contains the limiter's `keyPart`. */
  limit(keyPart: string): string;
  /** The channel of all notifications. */
  wakes: string;
  /** The channel of one replica's heartbeats. */
  beats(instanceId: string): string;
  /** BullMQ's prefix. The braces keep all keys of a queue on one node of a cluster. */
  importsPrefix: string;
  importsQueue: string;
  /**
   * The key of the index of a kind's pending values, which is also the prefix of the values' keys. The braces keep all
   * of them on one node of a cluster.
   */
  pending(kind: string): string;
  /** The prefix of keys that are written only to test whether Redis accepts writes. */
  probe: string;
}

/** Names for one deployment. `prefix` separates deployments that share a Redis. */
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

/** The Redis key of a pending value. `index` is the key of its kind's index. */
export const namePending = (index: string, key: string): string => `${index}:${key}`;

/** The Redis key of the log of a limited key. `prefix` is the prefix of its limiter. */
export const nameLimited = (prefix: string, key: string): string => `${prefix}:${key}`;

/** A Redis key for a probe, on the same node of a cluster as `failedKey`. `prefix` is the prefix of probes. */
export function nameProbe(prefix: string, failedKey: string): string {
  const hashTag = /\{[^}]+\}/.exec(failedKey)?.[0] ?? `{${failedKey}}`;
  return `${prefix}:${hashTag}`;
}
