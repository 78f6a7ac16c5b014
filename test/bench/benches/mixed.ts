import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort, waitUntilListening } from '../../support/ports.ts';
import { provide } from '../../support/programs.ts';
import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { tokenOf } from '../harness/collections.ts';
import { halfOf, type LoadReport, measureLatency, runLoad } from '../harness/load.ts';
import { holdPolls } from '../harness/polls.ts';
import { type ProcessTimes, readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { readRedisBytes } from '../harness/redis-calls.ts';
import { openReplica, type Replica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { type Latency, spreadOf } from '../harness/stats.ts';
import { crowdOf, openCrowd, readLastId } from './crowd.ts';
import { pollerOf, range } from './waiters.ts';

/**
 * Measures the usual mix of a sync client's requests, with one, two and four replicas. The database has ten thousand
 * users with a hundred bookmarks each.
 */

const CONNECTIONS = 32;
/** The names of the replicas. A run has at most four. */
const NAMES = ['first', 'second', 'third', 'fourth'];
const API = '/api/v1';

interface Request {
  path: string;
  body: string;
  token: string;
}

/**
 * Returns one request of a user. `dice` is 0 to 99 and selects the kind: of 100 requests, 85 are syncs, 10 adds,
 * 3 searches and 2 lists.
 */
function requestOf(user: number, dice: number, last: number): Request {
  const token = tokenOf(user);
  const of = (path: string, body: object) => ({ path: API + path, body: JSON.stringify(body), token });
  if (dice < 70) return of('/bookmarks/sync', { cursor: last });
  if (dice < 85) return of('/bookmarks/sync', { cursor: Math.floor(last * 0.9) });
  if (dice < 95) {
    const tags = [`Tag ${1 + (user % 10)}`, 'Tag 1'];
    return of('/bookmarks/add', { url: `https://bench.example/${user}`, title: 'A page to read', tags });
  }
  if (dice < 98) return of('/bookmarks/search', { query: 'server' });
  return dice < 99 ? of('/bookmarks/list', {}) : of('/tags/list', {});
}

function makeRequests(users: number, last: number): Request[] {
  return range(0, 50_000).map((n) =>
    requestOf(1 + ((n * 7_919) % users), (n * 37 + Math.floor(n / 100)) % 100, last),
  );
}

/** Starts HAProxy in front of the replicas. */
async function startBalancer({ environment }: Plan, replicas: readonly Replica[]): Promise<Replica> {
  const port = await findFreePort();
  const file = join(environment.folder, `haproxy-${port}.cfg`);
  writeFileSync(
    file,
    [
      'global\n  nbthread 1\n  maxconn 8000',
      'defaults\n  mode http\n  timeout connect 2s\n  timeout client 75s\n  timeout server 75s\n  http-reuse always',
      `frontend in\n  bind 127.0.0.1:${port}\n  default_backend replicas`,
      'backend replicas\n  balance roundrobin',
      ...replicas.map((replica, n) => `  server r${n} 127.0.0.1:${replica.port}`),
      '',
    ].join('\n'),
  );
  const child = spawn(await provide('haproxy'), ['-f', file, '-db'], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  await waitUntilListening(port);
  return {
    port,
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

interface Run {
  report: LoadReport;
  cpu: ProcessTimes;
  redisBytes: number;
}

async function runMixed(plan: Plan, url: string, count: number): Promise<Line> {
  const { environment, effort } = plan;
  await using stack = new AsyncDisposableStack();
  const replicas: Replica[] = [];
  for (const name of NAMES.slice(0, count)) replicas.push(stack.use(await openReplica(plan, url, name)));
  const balancer = stack.use(await startBalancer(plan, replicas));
  const last = await readLastId(url);
  const users = crowdOf(plan);
  const waiting = range(1, users / 10).map((user) => pollerOf(balancer, balancer, user, last));
  stack.use(await holdPolls(waiting));
  const requests = makeRequests(users, last);
  const job = {
    port: balancer.port,
    path: '',
    bodies: [],
    tokens: [],
    requests,
    connections: CONNECTIONS,
    expectStatus: 200,
  };
  if (effort.warmUpSeconds > 0) await runLoad({ ...job, seconds: effort.warmUpSeconds });
  const groups = {
    replicas: replicas.map(({ pid }) => pid),
    postgres: [environment.postgresPid],
    redis: [environment.redis.pid],
    balancer: [balancer.pid],
  };
  const runs: Run[] = [];
  for (let round = 0; round < effort.rounds; round += 1) {
    const before = { cpu: readProcessTimes(groups), redis: await readRedisBytes(environment.redis.url) };
    const report = await runLoad({ ...job, seconds: effort.seconds });
    if (report.failure !== undefined) throw new Error(report.failure);
    const cpu = timesBetween(before.cpu, readProcessTimes(groups));
    runs.push({ report, cpu, redisBytes: (await readRedisBytes(environment.redis.url)) - before.redis });
  }
  const perSecond = halfOf(runs.map(({ report }) => report.requests / report.seconds));
  const latencies: Latency[] = [];
  for (let round = 0; round < effort.rounds; round += 1)
    latencies.push(await measureLatency({ ...job, seconds: effort.seconds, perSecond }));
  return describeRuns(count, waiting.length, runs, latencies);
}

function describeRuns(
  count: number,
  waiting: number,
  runs: readonly Run[],
  latencies: readonly Latency[],
): Line {
  const spread = (pick: (run: Run) => number) => spreadOf(runs.map(pick));
  const cpuOf = (name: string) => spread(({ cpu, report }) => (cpu[name]! * 1_000) / report.requests);
  const latency = (name: keyof Latency) => spreadOf(latencies.map((each) => each[name]));
  const bytes = spread(({ report }) => report.bytes / report.requests).median;
  const redisBytes = spread(({ redisBytes, report }) => redisBytes / report.requests).median;
  return {
    bench: 'mixed',
    what: `${count} replica${count === 1 ? '' : 's'}, with ${waiting.toLocaleString('en')} held polls`,
    unit: '/s',
    service: spread(({ report }) => report.requests / report.seconds),
    cpu: Object.fromEntries(Object.keys(runs[0]!.cpu).map((name) => [name, cpuOf(name)])),
    latency: { p50: latency('p50'), p99: latency('p99'), p999: latency('p999'), max: latency('max') },
    note: `p99.9 ${latency('p999').median.toFixed(0)} ms; ${bytes.toFixed(0)} bytes a response, ${redisBytes.toFixed(0)} bytes to and from Redis a request`,
  };
}

export const mixed: Bench = {
  name: 'mixed',
  async run(plan) {
    const original = await openCrowd(plan, plan.quick ? 2 : 100);
    const lines: Line[] = [];
    for (const count of plan.quick ? [2] : [1, 2, 4]) {
      const url = await copyForWrites(plan, original, `mixed_${count}`);
      lines.push(await runMixed(plan, url, count));
      if (url !== original) await plan.environment.drop(url);
    }
    return lines;
  },
};
