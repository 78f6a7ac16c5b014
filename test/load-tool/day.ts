import { setTimeout as sleep } from 'node:timers/promises';
import { EndpointClient } from '../../src/client/client.ts';
import { Outcomes, runOpenLoop } from './open-loop.ts';

/**
 * Sends the same mix of requests as clients send on a normal day. Every user has a client that polls. The other
 * requests come from random users at a fixed rate.
 */

export const CLASSES = ['add', 'sync', 'search', 'list', 'poll', 'wake'] as const;
export type Class = (typeof CLASSES)[number];
export type Report = Record<Class, Outcomes>;

export interface DayOptions {
  url: string;
  /** The tokens, one for each user. */
  tokens: readonly string[];
  /** Requests per second of all users together, excluding polls. */
  perSecond: number;
  signal: AbortSignal;
}

interface User {
  client: EndpointClient;
  cursor: number;
  /**
   * The time when the user's earliest pending add was due. An add is pending until a poll returns it. Undefined if no
   * add is pending.
   */
  addedAt: number | undefined;
}

/**
 * The first polls are spread over `RAMP_MS`, so that they do not all come at once. The last requests must end within
 * `GRACE_MS`.
 */
const RAMP_MS = 10_000;
const GRACE_MS = 35_000;

/**
 * Chooses the class of a request by a random number that is at least 0 and below 100. Of 100 requests, 33 are adds,
 * 50 are syncs, 10 are searches, and 7 are lists.
 */
function classOf(dice: number): Class {
  if (dice < 33) return 'add';
  if (dice < 83) return 'sync';
  return dice < 93 ? 'search' : 'list';
}

let added = 0;

function sendAs(user: User, kind: Class): Promise<unknown> {
  const { client } = user;
  if (kind === 'add') {
    const url = `https://load.example/${process.pid}-${++added}`;
    return client.addBookmark({ url, title: 'A page to read later', tags: ['load', 'to read'] });
  }
  if (kind === 'sync') return client.syncBookmarks({ cursor: user.cursor });
  return kind === 'search' ? client.searchBookmarks({ query: 'page' }) : client.listBookmarks();
}

/** Runs until the signal aborts. Resolves when the last requests have ended. */
export async function runDay({ url, tokens, perSecond, signal }: DayOptions): Promise<Report> {
  const report = Object.fromEntries(CLASSES.map((name) => [name, new Outcomes()])) as Report;
  const users = tokens.map((token): User => {
    // The client does not retry and does not wait for quota, because both would hide failures from the report.
    const client = new EndpointClient({ baseUrl: url, token, retryForMs: 0 });
    return { client, cursor: 0, addedAt: undefined };
  });
  const ramp = Math.min(RAMP_MS, users.length * 10);
  const polls = users.map(async (user, n) => {
    await sleep((n * ramp) / users.length, undefined, { signal }).catch(() => {});
    await pollAs(user, report, signal);
  });
  const pending = new Set<Promise<void>>();
  const send = (dueAt: number) => {
    const user = users[Math.floor(Math.random() * users.length)]!;
    const kind = classOf(Math.random() * 100);
    if (kind === 'add') user.addedAt ??= dueAt;
    const sent = sendAs(user, kind);
    const recorded = report[kind].record(dueAt, sent).finally(() => pending.delete(recorded));
    pending.add(recorded);
  };
  await runOpenLoop(perSecond, send, signal);
  await Promise.race([Promise.all([...pending, ...polls]), sleep(GRACE_MS, undefined, { ref: false })]);
  for (const _ of pending) report.sync.fail('no response');
  return report;
}

/** Polls again and again, like a client. A poll that returns a user's add too late violates the objective `wake`. */
async function pollAs(user: User, { poll, wake }: Report, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const dueAt = performance.now();
    try {
      let retryAfter: string | null = null;
      const onHeaders = (headers: Headers) => {
        retryAfter = headers.get('x-retry-after-ms');
      };
      const page = await user.client.syncBookmarks(
        { cursor: user.cursor, wait: true },
        { signal, onHeaders },
      );
      user.cursor = page.cursor;
      if (!page.waited) poll.latencies.push(performance.now() - dueAt);
      if (page.bookmarks.length > 0 && user.addedAt !== undefined) {
        if (page.waited && !page.has_more) wake.latencies.push(performance.now() - user.addedAt);
        user.addedAt = undefined;
      }
      const pauseMs = Number(retryAfter ?? (page.waited || page.bookmarks.length > 0 ? 0 : 1_000));
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal }).catch(() => {});
    } catch (error) {
      if (signal.aborted) return;
      poll.fail((error as { code?: string }).code ?? String(error));
      await sleep(1_000, undefined, { signal }).catch(() => {});
    }
  }
}
