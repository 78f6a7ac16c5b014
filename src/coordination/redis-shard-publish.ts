import type { RedisKeys } from './keys.ts';
import { REPLY_WAIT_MS, withDeadline } from './redis-calls.ts';
import { type RedisClient, writeTogether } from './redis-clients.ts';
import { subjectOf } from './topics.ts';

/** Wakes that are published at a time. */
const PUBLISHED_TOGETHER = 500;

/** Who publishes: `origin` marks this replica's messages. */
export interface Publisher {
  keys: RedisKeys;
  origin: string;
}

/** Publishes the topics by sharded channels, those of a subject in one message. Never rejects: says which could not be, and why. */
export async function publishSharded(
  client: RedisClient,
  { keys, origin }: Publisher,
  topics: Iterable<string>,
): Promise<{ failed: string[]; error: unknown }> {
  const messages = [...Map.groupBy(topics, subjectOf)];
  const failed: string[] = [];
  let lastError: unknown;
  for (let from = 0; from < messages.length; from += PUBLISHED_TOGETHER) {
    const unsent = new Set(messages.slice(from, from + PUBLISHED_TOGETHER));
    writeTogether(client);
    const sending = [...unsent].map(async (message) => {
      const [subject, some] = message;
      await client.spublish(keys.wakesOf(subject), [origin, ...some].join('\n'));
      unsent.delete(message);
    });
    for (const each of sending) each.catch(() => {});
    await withDeadline(Promise.all(sending), REPLY_WAIT_MS).catch((error: unknown) => {
      lastError = error;
    });
    for (const [, some] of unsent) failed.push(...some);
  }
  return { failed, error: lastError };
}
