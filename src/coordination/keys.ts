/** Every name that the service uses in Redis. */
export interface RedisKeys {
  /** The prefix of one limiter's keys, with the `keyPart` of its window. The limited key follows it. */
  limit(keyPart: string): string;
  /** The channel of all notifications. */
  wakes: string;
  /** The channel of one replica's heartbeats. */
  beats(instanceId: string): string;
  /** BullMQ's prefix. The braces keep all keys of a queue on one node of a cluster. */
  importsPrefix: string;
  importsQueue: string;
  /**
   * The index of a kind's pending values, and the prefix of their keys. The braces keep them on one node of a cluster.
   */
  pending(kind: string): string;
  /** Prefix of keys that are written only to test that writing works. */
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

/** The name of one pending value; `index` is the index of its kind. */
export const namePending = (index: string, key: string): string => `${index}:${key}`;

/** The name of a key's log; `prefix` is its limiter's. */
export const nameLimited = (prefix: string, key: string): string => `${prefix}:${key}`;

/** A name on the same node of a cluster as `failedKey`; `prefix` is the one of probes. */
export function nameProbe(prefix: string, failedKey: string): string {
  const hashTag = /\{[^}]+\}/.exec(failedKey)?.[0] ?? `{${failedKey}}`;
  return `${prefix}:${hashTag}`;
}
