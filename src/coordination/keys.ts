/** Every name that the service uses in Redis. */
export interface RedisKeys {
  /** Prefix of the keys of one limiter, `keyPart` of its window in it; the limited key itself follows. */
  limit(keyPart: string): string;
  /** The channel of all notifications. */
  wakes: string;
  /** The channel of one replica's heartbeats. */
  beats(origin: string): string;
  /** BullMQ's prefix, in braces: all keys of a queue must lie on one node of a cluster. */
  importsPrefix: string;
  importsQueue: string;
  /** The index of the pending values of a kind, and prefix of their keys. In braces: they lie on one node of a cluster. */
  pending(kind: string): string;
  /** Prefix of keys that are written only to see whether they can be. */
  probe: string;
}

/** Names for one deployment. `prefix` sets apart deployments that share a Redis. */
export function nameKeys(prefix: string): RedisKeys {
  return {
    limit: (keyPart) => `${prefix}:limit:${keyPart}`,
    wakes: `${prefix}:wakes`,
    beats: (origin) => `${prefix}:wakes:${origin}`,
    importsPrefix: `{${prefix}}`,
    importsQueue: 'imports',
    pending: (kind) => `{${prefix}:pending}:${kind}`,
    probe: `${prefix}:probe`,
  };
}

/** The name of one pending value; `index` is that of its kind. */
export const namePending = (index: string, key: string): string => `${index}:${key}`;

/** The name of a key's log; `prefix` is that of its limiter. */
export const nameLimited = (prefix: string, key: string): string => `${prefix}:${key}`;

/** A name on the same node of a cluster as `failedKey`; `prefix` is that of probes. */
export function nameProbe(prefix: string, failedKey: string): string {
  const hashTag = /\{[^}]+\}/.exec(failedKey)?.[0] ?? `{${failedKey}}`;
  return `${prefix}:${hashTag}`;
}
