/** The address of a node, at which the other nodes of the Citus cluster reach it. */
export interface NodeAddress {
  host: string;
  port: number;
}

/**
 * A part of a distributed table. It holds the users for whom `hashId` returns at least `min` and less than the `min` of
 * the next shard.
 */
export interface Shard extends NodeAddress {
  min: number;
}

/**
 * Finds the shard that holds a user. `shards` must be in ascending order of `min`, and must begin with the least
 * possible hash.
 */
export function findShard<T extends { min: number }>(shards: readonly T[], userId: number): T | undefined {
  const hash = hashId(userId);
  return shards.findLast(({ min }) => min <= hash);
}

/**
 * Returns the hash of an id, as `hashint8` in Postgres computes it. Citus distributes rows by this hash. The id must
 * not be negative.
 */
export function hashId(id: number): number {
  const low = id | 0;
  const high = Math.floor(id / 2 ** 32) | 0;
  // The seed of Postgres' hash_bytes_uint32 for four bytes, and the final mix of Bob Jenkins' lookup3.
  const seed = (0x9e3779b9 + 4 + 3923095) | 0;
  let a = (seed + (low ^ high)) | 0;
  let b = seed;
  let c = seed;
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  c = ((c ^ b) - rotate(b, 24)) | 0;
  return c;
}

const rotate = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));
