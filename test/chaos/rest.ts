import { setTimeout as sleep } from 'node:timers/promises';
import { findFaults } from '../support/invariants.ts';
import { scrape } from '../support/replica.ts';
import { runOn } from '../support/run-on.ts';
import { readCollections } from './collections.ts';
import type { Fleet } from './fleet.ts';
import { type Journal, nowMs, type Rest, type Row } from './journal.ts';
import type { ProcessReport, ServiceProcess } from './service-process.ts';

/** The time limits for followers to receive everything, and for processes to release everything. */
const CATCH_UP_MS = 60_000;
const SETTLE_MS = 30_000;

/** How much the heap may grow during a run. It grows because pools and caches fill and code is compiled. */
const HEAP_GROWTH_BYTES = 40 * 1_048_576;
/**
 * How many more timers, and how many more sockets, a process may have than before the run. Each pooled connection has
 * one timer and one socket.
 */
const TIMER_GROWTH = 24;
const SOCKET_GROWTH = 24;

/** By process name: the process's resources before the run. */
export type Reports = Map<string, ProcessReport>;

export async function reportAll({ processes }: Fleet): Promise<Reports> {
  return new Map(await Promise.all(processes.map(async (each) => [each.name, await each.report()] as const)));
}

/**
 * Waits until every follower has received its user's newest bookmark. Returns a sentence for each follower that was
 * late.
 */
export async function awaitFollowers({ sql }: Fleet, { followers }: Journal): Promise<string[]> {
  const last = await sql<{ user: number; id: number }[]>`
    select user_id::float8 as user, max(id)::float8 as id from bookmarks group by user_id`;
  const lastId = new Map(last.map(({ user, id }) => [user, id]));
  const giveUpAt = nowMs() + CATCH_UP_MS;
  for (;;) {
    const behind = followers.filter(
      ({ user, receipts }) => (receipts.at(-1)?.id ?? 0) < (lastId.get(user) ?? 0),
    );
    if (behind.length === 0) return [];
    if (nowMs() > giveUpAt)
      return behind.map(({ name }) => `${name} was not told of everything within ${CATCH_UP_MS} ms`);
    await sleep(100);
  }
}

/**
 * Waits until nothing is in progress any more, and ends all processes. Returns the final state, with the resources that
 * were not released.
 */
export async function awaitRest(
  fleet: Fleet,
  before: Reports,
  behind: string[],
  log: (line: string) => void,
): Promise<Rest> {
  const leftovers = await findStillHeld(fleet);
  log('held polls, pools and queues are empty');
  // The balancer keeps idle connections to the replicas, so it is ended before the connections are counted.
  await fleet.balancer[Symbol.asyncDispose]();
  leftovers.push(...(await findGrowth(fleet, before)));
  await Promise.all(fleet.processes.map((each) => each.end('SIGTERM')));
  log('all processes have ended');
  leftovers.push(...(await findConnections(fleet)));
  const recountFaults = await findFaults(fleet.database.urls[0]!);
  const collections = await readCollections(fleet);
  const looked = { processes: before.size, gauges: fleet.processes.length * GAUGES.length };
  return { rows: await readRows(fleet), recountFaults, leftovers, behind, collections, looked };
}

/** Gauges that must be 0 when nobody sends requests. */
const GAUGES = [
  'bookmarks_waiters',
  'bookmarks_coordination_degraded{part="limits"}',
  'bookmarks_coordination_degraded{part="wakes"}',
  'bookmarks_database_pool_in_use{pool="api"}',
  'bookmarks_database_pool_in_use{pool="import"}',
  'bookmarks_database_pool_waiting{pool="api"}',
  'bookmarks_database_pool_waiting{pool="import"}',
  'bookmarks_imports_staged{state="queued"}',
];

async function findStillHeld({ processes }: Fleet): Promise<string[]> {
  const giveUpAt = nowMs() + SETTLE_MS;
  for (;;) {
    const held = (await Promise.all(processes.map(findHeld))).flat();
    if (held.length === 0 || nowMs() > giveUpAt) return held;
    await sleep(200);
  }
}

async function findHeld({ name, metricsPort }: ServiceProcess): Promise<string[]> {
  const samples = await scrape(metricsPort);
  return GAUGES.filter((gauge) => samples.get(gauge) !== 0).map(
    (gauge) => `${name}: ${gauge} is ${samples.get(gauge) ?? 'missing'}`,
  );
}

/**
 * Finds processes that have more resources than before the run. After the balancer has ended, its connections close one
 * by one, so this function waits until they are closed. Resources that remain after the time limit are leaks.
 */
async function findGrowth(fleet: Fleet, before: Reports): Promise<string[]> {
  for (const giveUpAt = nowMs() + SETTLE_MS; ; ) {
    const grown = [...(await reportAll(fleet))].flatMap(([name, report]) =>
      compareReports(name, before.get(name)!, report),
    );
    if (grown.length === 0 || nowMs() > giveUpAt) return grown;
    await sleep(200);
  }
}

function compareReports(
  name: string,
  base: ProcessReport,
  { heapBytes, resources }: ProcessReport,
): string[] {
  const more = (resource: string) => (resources[resource] ?? 0) - (base.resources[resource] ?? 0);
  const grown = heapBytes - base.heapBytes;
  return [
    ...(grown > HEAP_GROWTH_BYTES ? [`${name} holds ${Math.round(grown / 1_048_576)} MiB more`] : []),
    ...(more('Timeout') > TIMER_GROWTH ? [`${name} holds ${more('Timeout')} timers more`] : []),
    ...(more('TCPSocketWrap') > SOCKET_GROWTH ? [`${name} holds ${more('TCPSocketWrap')} sockets more`] : []),
  ];
}

/** Finds database connections that remain after the processes have ended. */
async function findConnections({ database }: Fleet): Promise<string[]> {
  for (const giveUpAt = nowMs() + SETTLE_MS; ; ) {
    const left = (await Promise.all(database.urls.map(listConnections))).flat();
    if (left.length === 0) return [];
    if (nowMs() > giveUpAt) return left.map((each) => `a connection is left: ${JSON.stringify(each)}`);
    await sleep(100);
  }
}

const listConnections = (url: string) =>
  runOn<{ application_name: string; state: string }>(
    url,
    `select application_name, state from pg_stat_activity
    where application_name like 'bookmark-service%' and datname = current_database()`,
  );

const readRows = async ({ sql }: Fleet): Promise<Row[]> => [
  ...(await sql<Row[]>`
    select id::float8, user_id::float8 as user, url, title, comment,
      array(select tag ->> 'name' from jsonb_array_elements(tags::jsonb) as tag) as tags
    from bookmarks
    order by user_id, id`),
];
