import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { issueTokens, makeSamples, tokenOf } from '../harness/collections.ts';
import { postTimed } from '../harness/http-exchange.ts';
import { readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { runPsql, timePsql } from '../harness/programs.ts';
import { openReplica, type Replica, startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { type Spread, spreadOf } from '../harness/stats.ts';
import { openCollection } from './collection.ts';

/** Imports whole collections, and copies the same rows by COPY. */

const FIRST_USER = 2_001;
const COLUMNS = 'url_key, created_at, updated_at, search_text, tag_ids, url, title, comment, tags';

/** The body of an import with this many different entries, each with three tags. */
export function makeImport(entries: number, mode: 'merge' | 'replace'): Buffer {
  const samples = makeSamples();
  const bookmarks = Array.from({ length: entries }, (_, n) => {
    const { url, title, comment } = samples[(n * 7_919) % samples.length]!;
    const tags = [n, n * 7 + 1, n * 11 + 2].map((t) => `Tag ${t % 300}`);
    const created_at = new Date(1_700_000_000_000 + n * 61_234).toISOString();
    return { url: `${url}?i=${n}`, title, comment, tags, created_at, updated_at: created_at };
  });
  return Buffer.from(JSON.stringify({ bookmarks, mode }));
}

/** Creates users for imports: premium, with a token, without bookmarks. */
export async function makeImporters(url: string, first: number, count: number): Promise<void> {
  const last = first + count - 1;
  await runPsql(
    url,
    `insert into users (id, email, email_key) select u, u || '@bench.example', u || '@bench.example' from generate_series(${first}, ${last}) u;
    insert into accounts (user_id, is_premium) select u, true from generate_series(${first}, ${last}) u`,
  );
  await issueTokens(url, first, count);
}

const STEPS = ['merge', 'merge again', 'replace', 'copy'] as const;
type Step = (typeof STEPS)[number];

interface Run {
  plan: Plan;
  url: string;
  api: Replica;
  worker: Replica;
  bodies: { merge: Buffer; replace: Buffer };
  entries: number;
}

/** The milliseconds of each step of a round, and the CPU time of the first step. */
async function runRound(run: Run, user: number) {
  const { plan, api, worker, bodies, entries, url } = run;
  const post = async (body: Buffer, imported: number) => {
    const response = await postTimed(api.port, '/api/v1/import', tokenOf(user), body);
    if (response.status !== 200 || !response.text.startsWith(`{"imported":${imported},`))
      throw new Error(response.text);
    return response.ms;
  };
  const groups = { api: [api.pid], worker: [worker.pid], postgres: [plan.environment.postgresPid] };
  const before = readProcessTimes(groups);
  const merge = await post(bodies.merge, entries);
  const middle = readProcessTimes(groups);
  const again = await post(bodies.merge, 0);
  const after = readProcessTimes(groups);
  const replace = await post(bodies.replace, entries);
  const copy = await copyRows(url, user);
  return {
    ms: { merge, 'merge again': again, replace, copy } satisfies Record<Step, number>,
    cpu: { merge: timesBetween(before, middle), 'merge again': timesBetween(middle, after) },
  };
}

/** Copies a user's rows to an unused user id, and returns the milliseconds. */
async function copyRows(url: string, user: number): Promise<number> {
  const other = user + 1_000_000;
  const select = `select ${other}, ${COLUMNS} from bookmarks where user_id = ${user} order by id`;
  const rows = await runPsql(url, `copy (${select}) to stdout`);
  const ms = await timePsql(url, `copy bookmarks (user_id, ${COLUMNS}) from stdin`, [rows]);
  await runPsql(url, `delete from bookmarks where user_id in (${user}, ${other})`);
  await runPsql(url, 'vacuum bookmarks');
  return ms;
}

async function runSize(plan: Plan, entries: number, effort: { rounds: number }): Promise<Line[]> {
  const { environment } = plan;
  const original = await openCollection(plan);
  const url = await copyForWrites(plan, original, 'importing');
  await makeImporters(url, FIRST_USER, effort.rounds + 1);
  await using api = await openReplica(plan, url);
  await using worker = await startReplica(environment, url, {}, 'worker');
  const bodies = { merge: makeImport(entries, 'merge'), replace: makeImport(entries, 'replace') };
  const run: Run = { plan, url, api, worker, bodies, entries };
  await runRound(run, FIRST_USER);
  const rounds: Awaited<ReturnType<typeof runRound>>[] = [];
  for (let n = 1; n <= effort.rounds; n += 1) rounds.push(await runRound(run, FIRST_USER + n));

  const ms = (step: Step) => spreadOf(rounds.map((round) => round.ms[step]));
  const ratio = (step: Step) => spreadOf(rounds.map((round) => round.ms.copy / round.ms[step]));
  const cpu = (step: 'merge' | 'merge again') =>
    Object.fromEntries(
      ['api', 'worker', 'postgres'].map((name) => [
        name,
        spreadOf(rounds.map((round) => (round.cpu[step][name]! * 1_000) / entries)),
      ]),
    );
  const line = (step: Step, mark: { text: string; reached: boolean } | undefined): Line => ({
    bench: 'import',
    what: `${entries.toLocaleString('en')} entries, ${step}`,
    unit: 'ms',
    service: ms(step),
    reference: ms('copy'),
    referenceName: 'COPY of the same rows',
    ratio: ratio(step),
    ...(mark && { mark }),
    ...(step !== 'replace' && step !== 'copy' && { cpu: cpu(step) }),
  });
  return [
    line('merge', markMerge(ratio('merge'))),
    line('merge again', { text: '≥ 1', reached: ratio('merge again').median >= 1 }),
    line('replace', markMerge(ratio('replace'))),
  ];
}

const markMerge = (ratio: Spread) => ({ text: '≥ 0.45', reached: ratio.median >= 0.45 });

export const importAll: Bench = {
  name: 'import',
  async run(plan) {
    if (plan.quick) return await runSize(plan, 1_000, plan.effort);
    const small = await runSize(plan, 10_000, plan.effort);
    return [...small, ...(await runSize(plan, 100_000, plan.effort))];
  },
};
