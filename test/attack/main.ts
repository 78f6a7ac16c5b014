import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { openDatabase } from '../../src/store/driver/open.ts';
import { migrate } from '../../src/store/schema/migrations.ts';
import { openRunFolder } from '../chaos/run-folder.ts';
import { fill, fillTags } from '../support/fill.ts';
import { LIST_TAGS, sendMcp } from '../support/mcp.ts';
import { measureGrowth, residentBytes } from '../support/memory.ts';
import { makePostgresTemplate, startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { type Replica, type ReplicaEnv, startReplica } from '../support/replica.ts';
import { createPrincipal } from '../support/users.ts';
import type { Targets } from './attackers.ts';

/**
 * `npm run test:attack` runs all attacks at the same time against one replica and one worker, on loopback, while
 * another user works. Exits with 1 if that user got a wrong response or memory exceeded its limits. Prints times but
 * does not judge them.
 */

const MIB = 1_048_576;

/** How far the memory of the replica (`API`) and of the worker may grow during the attacks. */
const API_GROWTH_BYTES = 200 * MIB;
const WORKER_GROWTH_BYTES = 384 * MIB;

/**
 * Some minutes after the attacks, the replica may still take this much more memory than at rest, because malloc keeps
 * small blocks. V8 keeps its young generation until the next full collection, which an idle replica reaches late.
 */
const REST_BYTES = 32 * MIB;

const SESSIONS = 200;

/** How long the attacks on `/mcp` run alone before all attacks. */
const MCP_SECONDS = 15;

/**
 * Sends the requests of the user who does not attack, one after another, until `signal` is aborted. Returns the time of
 * each request in milliseconds, and each status other than 200.
 */
async function work(replica: Replica, token: string, signal: AbortSignal) {
  const times: number[] = [];
  const wrong: string[] = [];
  const requests: [string, object][] = [
    ['/user/profile', {}],
    ['/bookmarks/list', { limit: 50 }],
    ['/bookmarks/search', { query: 'bookmark' }],
    ['/bookmarks/sync', {}],
    ['/bookmarks/add', { url: 'https://example.org/' }],
  ];
  for (let n = 0; !signal.aborted; n += 1) {
    const [path, body] = requests[n % requests.length]!;
    const begunAt = performance.now();
    const { status } = await replica.post(path, body, token);
    times.push(performance.now() - begunAt);
    if (status !== 200) wrong.push(`${path}: ${status}`);
    await sleep(20);
  }
  return { times: times.toSorted((a, b) => a - b), wrong };
}

/** Lets the user who does not attack work until `attacking` has ended. */
async function workDuring(replica: Replica, token: string, attacking: () => Promise<void>) {
  const stop = new AbortController();
  const working = work(replica, token, stop.signal);
  await attacking();
  stop.abort();
  return working;
}

/** Returns a quantile of times in milliseconds, with one decimal. */
const quantile = (sorted: readonly number[], share: number): number =>
  Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1));

const inMib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;

/** Returns the image's malloc setting. The setting decides how much freed memory malloc returns to the system. */
function readAllocation(): ReplicaEnv {
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  const [, name, value] = /^ENV (MALLOC_\w+)=(\w+)$/m.exec(dockerfile)!;
  return { [name!]: value! };
}

/** Runs attacks in a separate process. */
async function attack(targets: Targets): Promise<void> {
  const child = fork(fileURLToPath(new URL('attackers.ts', import.meta.url)));
  child.send(targets);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the attackers ended with ${code}`);
}

/** Creates the attacking accounts and the account of the working user, each with tokens. */
async function makeAccounts(url: string) {
  await using stack = new AsyncDisposableStack();
  const database = await openDatabase({ url });
  stack.defer(() => database.close());
  const premium = () => createPrincipal(database, { premium: true });
  const [greedy, importer, other] = [await premium(), await premium(), await premium()];
  const tagged = await createPrincipal(database);
  await fill(url, greedy, 4_000, 10_000);
  await fill(url, other, 1_000);
  await fillTags(url, tagged, 10_000);
  const sessions = [];
  for (let n = 0; n < SESSIONS; n += 1) sessions.push((await createPrincipal(database)).token);
  return {
    greedy: greedy.token,
    importer: importer.token,
    tagged: tagged.token,
    other: other.token,
    sessions,
  };
}

async function run(options: { seconds: string; rest: string }): Promise<void> {
  using _folder = openRunFolder();
  const seconds = Number(options.seconds);
  await makePostgresTemplate();
  await using postgres = await startPostgres();
  await migrate({ url: postgres.url });
  await using redis = await startRedis();
  const env = { ...readAllocation(), DATABASE_URL: postgres.url, REDIS_URL: redis.url, TRUST_PROXY: 1 };
  await using api = await startReplica('api', env);
  await using worker = await startReplica('worker', env);
  const { other, ...tokens } = await makeAccounts(postgres.url);

  // What the code for these requests takes once is no growth.
  await work(api, other, AbortSignal.timeout(3_000));
  for (let n = 0; n < 10; n += 1) await sendMcp(api.origin, other, LIST_TAGS);
  const before = { api: residentBytes(api.pid), worker: residentBytes(worker.pid) };
  const calm = await work(api, other, AbortSignal.timeout(5_000));
  const batch = await sendMcp(api.origin, tokens.tagged, [LIST_TAGS]);
  const during = (attacks: Targets['attacks'], attackSeconds: number) =>
    workDuring(api, other, () => attack({ origin: api.origin, seconds: attackSeconds, ...tokens, attacks }));
  const mcp = await during('mcp', MCP_SECONDS);
  let workerGrowth = 0;
  let all = mcp;
  const apiGrowth = await measureGrowth(api.pid, async () => {
    workerGrowth = await measureGrowth(worker.pid, async () => {
      all = await during('all', seconds);
    });
  });
  const hasReturned = () => residentBytes(api.pid) <= before.api + REST_BYTES;
  for (let n = 0; n < Number(options.rest) && !hasReturned(); n += 1) await sleep(1_000);
  const after = { api: residentBytes(api.pid), worker: residentBytes(worker.pid) };

  for (const [when, { times }] of Object.entries({
    'before the attacks': calm,
    'while one token sends to /mcp': mcp,
    'during all attacks': all,
  })) {
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
    console.log(`another user ${when}: ${times.length} requests, p50 ${p50} ms, p99 ${p99} ms`);
  }
  console.log(
    `replica: at rest ${inMib(before.api)}, at most ${inMib(apiGrowth)} more, then ${inMib(after.api)}`,
  );
  console.log(
    `worker: at rest ${inMib(before.worker)}, at most ${inMib(workerGrowth)} more, then ${inMib(after.worker)}`,
  );
  const faults = [
    ...(batch.status === 400 && batch.text.includes('-32600') ? [] : ['a batch to /mcp was not refused']),
    ...[...mcp.wrong, ...all.wrong].map((text) => `another user got a wrong response: ${text}`),
    ...(apiGrowth > API_GROWTH_BYTES ? ['the replica grew too much'] : []),
    ...(workerGrowth > WORKER_GROWTH_BYTES ? ['the worker grew too much'] : []),
    ...(hasReturned() ? [] : ['the memory of the replica did not come back']),
  ];
  for (const fault of faults) console.error(fault);
  console.log(faults.length === 0 ? 'nobody was hurt' : `${faults.length} faults`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

await new Command('test:attack')
  .option('--seconds <n>', 'how long the attacks last', '60')
  .option('--rest <n>', 'how many seconds the memory of the replica may take to come back', '300')
  .action(run)
  .parseAsync();
