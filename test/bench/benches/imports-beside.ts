import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { postTimed } from '../harness/http-exchange.ts';
import { halfOf, measureLatency, runLoad } from '../harness/load.ts';
import { openReplica, startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { type Latency, spreadOf } from '../harness/stats.ts';
import { ADDING, openCollection, tokensOf, usersFrom } from './collection.ts';
import { makeImport, makeImporters } from './import.ts';

/**
 * Measures how much imports delay other users. Ten users import 50,000 bookmarks each. The runs differ in how many
 * imports a worker runs at a time.
 */

const FIRST_USER = 3_001;
const IMPORTS = 10;

/**
 * The measurement takes about as long as the ten imports take on two cores. A shorter measurement would end while the
 * bodies of the imports are still arriving.
 */
const MEASURED_SECONDS = 30;

/** Returns a load for eight connections: many users add and read bookmarks. */
function mixOf(port: number, seconds: number) {
  const requests = usersFrom(ADDING.first, ADDING.count).flatMap((user, n) => [
    { path: '/api/v1/bookmarks/sync', body: '{"cursor":9007199254740991}', token: tokensOf(user)[n % 20]! },
    { path: '/api/v1/bookmarks/list', body: '{"limit":50}', token: tokensOf(user)[n % 20]! },
    {
      path: '/api/v1/bookmarks/add',
      body: `{"url":"https://bench.example/${n}"}`,
      token: tokensOf(user)[n % 20]!,
    },
  ]);
  return { port, path: '', bodies: [], tokens: [], requests, connections: 8, seconds, expectStatus: 200 };
}

async function runConcurrency(plan: Plan, concurrency: number): Promise<Line> {
  const { environment, effort, quick } = plan;
  const url = await copyForWrites(plan, await openCollection(plan), 'beside');
  await makeImporters(url, FIRST_USER, IMPORTS * effort.rounds);
  await using api = await openReplica(plan, url);
  await using _worker = await startReplica(
    environment,
    url,
    { IMPORT_CONCURRENCY: String(concurrency) },
    'worker',
  );
  const body = makeImport(quick ? 500 : 50_000, 'merge');
  const warm = await runLoad(mixOf(api.port, effort.seconds));
  const perSecond = halfOf([warm.requests / warm.seconds]);
  const seconds = quick ? effort.seconds : MEASURED_SECONDS;
  const measure = () => measureLatency({ ...mixOf(api.port, seconds), perSecond });
  const alone: Latency[] = [];
  const beside: Latency[] = [];
  const took: number[] = [];
  for (let round = 0; round < Math.min(2, effort.rounds); round += 1) {
    alone.push(await measure());
    const users = usersFrom(FIRST_USER + round * IMPORTS, IMPORTS);
    const startedAt = performance.now();
    const imports = Promise.all(
      users.map((user) => postTimed(api.port, '/api/v1/import', tokenOf(user), body)),
    );
    beside.push(await measure());
    for (const response of await imports) if (response.status !== 200) throw new Error(response.text);
    took.push((performance.now() - startedAt) / 1_000);
  }
  const p99 = (latencies: Latency[]) => spreadOf(latencies.map((latency) => latency.p99));
  return {
    bench: 'imports-beside',
    what: `IMPORT_CONCURRENCY=${concurrency}: p99 of others beside ten imports`,
    unit: 'ms',
    service: p99(beside),
    reference: p99(alone),
    referenceName: 'the same without imports',
    ratio: spreadOf(beside.map((latency, round) => latency.p99 / alone[round]!.p99)),
    note: `the ten took ${spreadOf(took).median.toFixed(1)} s`,
  };
}

export const importsBeside: Bench = {
  name: 'imports-beside',
  async run(plan) {
    const lines: Line[] = [];
    for (const concurrency of plan.quick ? [2] : [1, 2, 4])
      lines.push(await runConcurrency(plan, concurrency));
    return lines;
  },
};
