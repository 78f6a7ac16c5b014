import { setTimeout as sleep } from 'node:timers/promises';
import { BookmarkClient, MemoryStore } from '../../../src/client/index.ts';
import { until } from '../../support/until.ts';
import type { Bench, Plan } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { sampleLoad } from '../harness/load.ts';
import { runPsql } from '../harness/programs.ts';
import { openReplica, type Replica } from '../harness/replica.ts';
import { cpuLineOf, type Line } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';
import { spreadOf } from '../harness/stats.ts';
import { ADDING, HUNDRED_THOUSAND, openCollection, tokensOf } from './collection.ts';

/** Compares `changes` with `list` and `sync`, and measures how soon mirrors receive an edit. */

const CONNECTIONS = 8;
const EDITOR = ADDING.first;
const EDITS_PER_SECOND = 50;
const MIRRORS = 10;
/** Each edit goes to all mirrors at the same time. At this rate, all mirrors hold a poll again before the next edit. */
const MIRRORED_EDITS_PER_SECOND = 20;
/** The number of edits before measuring starts. */
const WARM_UPS = 10;

const API = '/api/v1';

const clientOf = ({ port }: Replica, token: string) =>
  new BookmarkClient({ baseUrl: `http://127.0.0.1:${port}${API}`, token });

function sideOf({ environment }: Plan, replica: Replica, path: string, body: object): Side {
  return {
    name: path,
    processes: { api: [replica.pid], postgres: [environment.postgresPid], redis: [environment.redis.pid] },
    run: (seconds) =>
      sampleLoad({
        ...{ port: replica.port, path: `${API}/bookmarks/${path}`, bodies: [JSON.stringify(body)] },
        ...{ tokens: tokensOf(HUNDRED_THOUSAND), connections: CONNECTIONS, expectStatus: 200, seconds },
      }),
  };
}

async function compare(plan: Plan, what: string, sides: readonly [Side, Side]): Promise<Line> {
  const [ours, theirs] = await compareSides(sides, plan.effort);
  return cpuLineOf({ bench: 'changes', what }, ours!, theirs!, 0.9);
}

/**
 * Compares `changes` with `list` for the first page of a collection, and with `sync` for a reader that is up to date.
 */
async function compareReads(plan: Plan, url: string, replica: Replica): Promise<Line[]> {
  const { cursor } = await clientOf(replica, tokenOf(HUNDRED_THOUSAND)).readChanges({ from: 'now' });
  const last = await runPsql(url, `select max(id) from bookmarks where user_id = ${HUNDRED_THOUSAND}`);
  return [
    await compare(plan, 'first page of 100 of 100,000, compared with `list`', [
      sideOf(plan, replica, 'changes', { limit: 100 }),
      sideOf(plan, replica, 'list', { limit: 100 }),
    ]),
    await compare(plan, 'first page of 500 of 100,000, compared with `list`', [
      sideOf(plan, replica, 'changes', { limit: 500 }),
      sideOf(plan, replica, 'list', { limit: 500 }),
    ]),
    await compare(plan, 'idle, compared with `sync`', [
      sideOf(plan, replica, 'changes', { cursor }),
      sideOf(plan, replica, 'sync', { cursor: Number(last) }),
    ]),
  ];
}

interface Edits {
  /** For each title, the time when the edit that sets the title was sent. */
  sentAt: Map<string, number>;
  /** Sends `count` edits. They edit one bookmark after another. */
  send(count: number, perSecond: number): Promise<void>;
}

async function openEdits(replica: Replica): Promise<Edits> {
  const client = clientOf(replica, tokenOf(EDITOR));
  const { bookmarks } = await client.listBookmarks({ limit: 100 });
  const sentAt = new Map<string, number>();
  const send = async (count: number, perSecond: number) => {
    const startedAt = performance.now();
    const sent: Promise<unknown>[] = [];
    for (let n = 0; n < count; n += 1) {
      await sleep(Math.max(0, startedAt + (n * 1_000) / perSecond - performance.now()));
      const title = `edit ${sentAt.size} ${performance.now()}`;
      sentAt.set(title, performance.now());
      sent.push(client.editBookmark({ id: bookmarks[n % bookmarks.length]!.id, title }));
    }
    await Promise.all(sent);
  };
  return { sentAt, send };
}

/** Mirrors until `signal` is aborted. Calls `onTitle` for each bookmark of a page after the page has been applied. */
async function followTitles(
  client: BookmarkClient,
  onTitle: (title: string) => void,
  signal: AbortSignal,
  onCaughtUp: () => void,
): Promise<void> {
  try {
    for await (const { bookmarks, isCaughtUp } of client.mirror({ store: new MemoryStore(), signal })) {
      for (const { title } of bookmarks) onTitle(title);
      if (isCaughtUp) onCaughtUp();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Sends edits to the replica `edited`. For each edit and each mirror at the replica `at`, measures the time until the
 * mirror has applied the edit. Returns the times in ms, sorted.
 */
async function measureEdits(
  [at, edited]: readonly [Replica, Replica],
  mirrors: number,
  count: number,
  perSecond: number,
): Promise<number[]> {
  const { sentAt, send } = await openEdits(edited);
  const latencies: number[] = [];
  const ending = new AbortController();
  const onTitle = (title: string) => {
    const sent = sentAt.get(title);
    if (sent !== undefined) latencies.push(performance.now() - sent);
  };
  const caughtUp = Array.from({ length: mirrors }, () => Promise.withResolvers<void>());
  const following = caughtUp.map(({ resolve }, n) =>
    followTitles(clientOf(at, tokenOf(EDITOR, 1 + n)), onTitle, ending.signal, resolve),
  );
  await Promise.all(caughtUp.map(({ promise }) => promise));
  await send(WARM_UPS, perSecond);
  await until(() => latencies.length >= WARM_UPS * mirrors);
  latencies.length = 0;
  await send(count, perSecond);
  await until(() => latencies.length >= count * mirrors);
  ending.abort();
  await Promise.all(following);
  return latencies.sort((a, b) => a - b);
}

const pick = (sorted: readonly number[], share: number): number => sorted[Math.floor(sorted.length * share)]!;

export const changes: Bench = {
  name: 'changes',
  async run(plan) {
    const url = await openCollection(plan);
    await using left = await openReplica(plan, url);
    await using right = await openReplica(plan, url, 'second');
    const lines = await compareReads(plan, url, left);
    const busy: number[][] = [];
    const mirrored: number[][] = [];
    const count = plan.quick ? 10 : 100;
    for (let n = 0; n < Math.min(3, plan.effort.rounds); n += 1) {
      busy.push(await measureEdits([left, left], 1, count * 2, EDITS_PER_SECOND));
      mirrored.push(await measureEdits([left, right], MIRRORS, count, MIRRORED_EDITS_PER_SECOND));
    }
    const across = spreadOf(mirrored.map((latencies) => pick(latencies, 0.95)));
    const p50 = (rounds: number[][]) => spreadOf(rounds.map((each) => pick(each, 0.5))).median.toFixed(1);
    return [
      ...lines,
      {
        bench: 'changes',
        what: `a follower of ${EDITS_PER_SECOND} edits a second, from the edit to its copy, p99`,
        unit: 'ms',
        service: spreadOf(busy.map((latencies) => pick(latencies, 0.99))),
        note: `p50 ${p50(busy)} ms`,
      },
      {
        bench: 'changes',
        what: `an edit at the other of two replicas, in ${MIRRORS} mirrors, p95`,
        unit: 'ms',
        service: across,
        mark: { text: '< 50 ms', reached: across.median < 50 },
        note: `p50 ${p50(mirrored)} ms`,
      },
    ];
  },
};
