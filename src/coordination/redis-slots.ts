import { Redis } from 'ioredis';
import type { RedisKeys } from './keys.ts';
import { type RedisClient, slotOf } from './redis-clients.ts';
import type { WakeChannel } from './redis-shard.ts';

/** Which server has which slot, as a client knows it. Where there is no cluster, one server has all. */

/** The one server where there is no cluster. */
const ONLY = '';

/** Names that are tried for a heartbeat's channel: enough for a server that has one slot alone. */
const BEAT_NAMES = 300_000;

/** The server that a slot's channels are at; `undefined` where nobody has the slot. */
export const ownerOf = (client: RedisClient, slot: number): string | undefined =>
  client instanceof Redis ? ONLY : client.slots[slot]?.[0];

/** The servers that have slots. */
export function listOwners(client: RedisClient): Set<string> {
  if (client instanceof Redis) return new Set([ONLY]);
  const owners = new Set<string>();
  for (const keys of client.slots) if (keys?.[0] !== undefined) owners.add(keys[0]);
  return owners;
}

/** Asks the nodes of a cluster who has which slot; resolves also where none says so. */
export async function refreshSlots(client: RedisClient): Promise<void> {
  if (client instanceof Redis) return;
  await new Promise<void>((resolve) => client.refreshSlotsCache(() => resolve()));
}

/** Channels by commands: in a cluster each command names those of one slot. */
export function groupForCommands(client: RedisClient, channels: readonly WakeChannel[]): WakeChannel[][] {
  if (channels.length === 0) return [];
  if (client instanceof Redis) return [[...channels]];
  return [...Map.groupBy(channels, ({ slot }) => slot).values()];
}

/** Finds a channel for the heartbeats of one replica whose slot a server has; `undefined` where it has none. */
export type BeatNamer = (client: RedisClient, node: string) => string | undefined;

/** Keeps the slots of the names that it tried, for the next server. */
export function nameBeats(keys: RedisKeys, origin: string): BeatNamer {
  const slots: number[] = [];
  return (client, node) => {
    for (let n = 0; n < BEAT_NAMES; n += 1) {
      const name = keys.beats(`${origin}.${n}`);
      slots[n] ??= slotOf(name);
      if (ownerOf(client, slots[n]!) === node) return name;
    }
    return undefined;
  };
}
