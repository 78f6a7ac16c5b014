import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOSTILE_IMPORTS } from '../support/hostile-imports.ts';
import { LIST_TAGS, sendMcp } from '../support/mcp.ts';
import { post } from '../support/post.ts';
import { formatPost, sendUnread } from '../support/unread.ts';

/** This program runs attacks on a replica at the same time, in a process of its own. It ignores the responses. */

/** The target, the duration and the tokens of an attack. */
export interface Targets {
  origin: string;
  seconds: number;
  /** A token of an account with large bookmarks. */
  greedy: string;
  importer: string;
  /** A token of an account with as many tags as an account may have. */
  tagged: string;
  /** The session tokens that the attack revokes. */
  sessions: string[];
  /** Which attacks to run: only those on `/mcp`, or all. */
  attacks: 'mcp' | 'all';
}

type Attack = (targets: Targets, n: number, signal: AbortSignal) => Promise<unknown>;

/** Returns the header with which a trusted proxy names the client's address. Each `n` gives a different network. */
const from = (n: number) => ({ 'x-forwarded-for': `198.51.${(n >> 8) & 255}.${n & 255}` });

const idOf = (token: string): string => token.split('_')[1]!;

/** Sends a request and reads its response. */
const send = (
  origin: string,
  path: string,
  body: unknown,
  token?: string,
  headers?: Record<string, string>,
) => post(origin, path, body, { ...(token && { token }), ...(headers && { headers }) });

const bodies = Object.values(HOSTILE_IMPORTS);

/** Attacks, each with the number of copies that run in parallel. */
type Attacks = readonly [sideBySide: number, attack: Attack][];

/**
 * Calls a tool of `/mcp`: eight times in 15 s as a batch of 100 calls, which is refused, and otherwise by single calls,
 * as many as the rate limit of a token allows.
 */
const MCP_ATTACKS: Attacks = [
  [1, ({ origin, tagged }) => sendMcp(origin, tagged, Array(100).fill(LIST_TAGS)).then(() => sleep(1_900))],
  [1, ({ origin, tagged }) => sendMcp(origin, tagged, LIST_TAGS).then(() => sleep(150))],
];

const ALL_ATTACKS: Attacks = [
  ...MCP_ATTACKS,
  // Requests several pages or an export on a connection, and does not read the responses.
  [
    80,
    (targets, _, signal) =>
      leaveUnread(targets, formatPost('/bookmarks/list', targets.greedy, { limit: 500 }).repeat(8), signal),
  ],
  [20, (targets, _, signal) => leaveUnread(targets, formatPost('/export', targets.greedy), signal)],
  // Sends bodies that cost far more than their size suggests.
  [1, ({ origin, importer }, n) => send(origin, '/import', bodies[n % bodies.length]!.body(), importer)],
  // Sends guesses of invite codes and of tokens, from many networks.
  [4, ({ origin }, n) => send(origin, '/auth/invite', { code: 'AAAAAAAA' }, undefined, from(n))],
  [
    4,
    ({ origin, greedy }, n) =>
      send(origin, '/user/profile', {}, `bka_${idOf(greedy)}_${String(n).padStart(43, 'A')}`, from(n % 7)),
  ],
  // Revokes a token while a poll with this token waits.
  [2, ({ origin, sessions }) => revokeDuringPoll(origin, sessions.pop())],
  // Sends half of a request's head.
  [100, ({ origin }, _, signal) => sendPart(origin, HALF_HEAD, signal)],
  // Sends a body without its last byte.
  [40, ({ origin, greedy }, _, signal) => sendPart(origin, formatUnfinished(greedy), signal)],
  // Sends the most expensive searches, adds many tags to bookmarks, and reads changes.
  [
    6,
    ({ origin, greedy }) =>
      send(
        origin,
        '/bookmarks/search',
        { query: 'c om me nt xq', sort: 'title', site: 'no.example' },
        greedy,
      ),
  ],
  [
    2,
    ({ origin, greedy }, n) => send(origin, '/bookmarks/search', { tags: namesFrom(n), query: 'a' }, greedy),
  ],
  [
    2,
    ({ origin, greedy }, n) =>
      send(origin, '/bookmarks/edit', { ids: idsFrom(n), add_tags: namesFrom(n) }, greedy),
  ],
  [2, ({ origin, greedy }) => send(origin, '/bookmarks/changes', { limit: 500 }, greedy)],
];

const namesFrom = (n: number): string[] => Array.from({ length: 100 }, (_, m) => `tag ${n % 90} ${m}`);
const idsFrom = (n: number): number[] => Array.from({ length: 500 }, (_, m) => 1 + ((n * 500 + m) % 4_000));

async function leaveUnread({ origin }: Targets, bytes: string, signal: AbortSignal): Promise<void> {
  using client = await sendUnread(origin, bytes);
  // A client that does not read cannot see that the server closed the connection, so it stops after 40 seconds.
  await sleep(40_000, undefined, { signal }).catch(() => {});
  client.socket.destroy();
}

async function revokeDuringPoll(origin: string, token: string | undefined): Promise<void> {
  if (token === undefined) return void (await sleep(1_000));
  const held = send(origin, '/bookmarks/sync', { wait: true }, token);
  await send(origin, '/logout', {}, token);
  await held;
}

const HALF_HEAD = 'POST /api/v1/bookmarks/add HTTP/1.1\r\nHost: localhost\r\nContent-Le';

const LONGEST_BYTES = 640 * 1_024;

const formatUnfinished = (token: string): string =>
  `POST /api/v1/bookmarks/add HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${LONGEST_BYTES}\r\n\r\n${' '.repeat(LONGEST_BYTES - 1)}`;

/** Sends an incomplete request and keeps the connection open until the server closes it. */
async function sendPart(origin: string, bytes: string, signal: AbortSignal): Promise<void> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.resume();
  socket.write(bytes);
  await Promise.race([closed, sleep(20_000, undefined, { signal }).catch(() => {})]);
  socket.destroy();
}

async function repeat(attack: Attack, targets: Targets, first: number, signal: AbortSignal): Promise<void> {
  for (let n = first; !signal.aborted; n += 1_000) {
    // Attacks normally end in refusals and closed connections.
    await attack(targets, n, signal).catch(() => sleep(10));
  }
}

const [targets] = (await once(process, 'message')) as [Targets];
const signal = AbortSignal.timeout(targets.seconds * 1_000);
await Promise.race([
  Promise.all(
    (targets.attacks === 'mcp' ? MCP_ATTACKS : ALL_ATTACKS).flatMap(([sideBySide, attack]) =>
      Array.from({ length: sideBySide }, (_, n) => repeat(attack, targets, n, signal)),
    ),
  ),
  // When this time is over, the process exits without waiting for requests in flight.
  sleep((targets.seconds + 2) * 1_000),
]);
process.exit(0);
