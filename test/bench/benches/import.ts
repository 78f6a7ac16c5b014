import { type Bench, copyForWrites, type Plan } from '../harness/bench.ts';
import { issueTokens, makeSamples, tokenOf } from '../harness/collections.ts';
import { postTimed } from '../harness/http-exchange.ts';
import { type ProcessTimes, readProcessTimes, timesBetween } from '../harness/process-time.ts';
import { runPsql, timePsql } from '../harness/programs.ts';
import { openReplica, type Replica, startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { spreadOf } from '../harness/stats.ts';
import { openCollection } from './collection.ts';

/** Imports whole collections, and writes the same rows with COPY. */

const FIRST_USER = 2_001;
const COLUMNS = 'url_key, created_at, updated_at, search_text, tag_ids, url, title, comment, tags';

/** Returns the body of an import with this many different entries, each with three tags. */
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

/** Creates users for imports. They are premium and have a token but no bookmarks. */
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

/** How long a step took, and how much CPU time each group of processes used for it, both in milliseconds. */
interface Taken {
  ms: number;
  cpu: ProcessTimes;
}

async function runRound(run: Run, user: number): Promise<Record<Step, Taken>> {
  const { plan, api, worker, bodies, entries, url } = run;
  const groups = { api: [api.pid], worker: [worker.pid], postgres: [plan.environment.postgresPid] };
  const take = async (step: () => Promise<number>): Promise<Taken> => {
    const before = readProcessTimes(groups);
    const ms = await step();
    return { ms, cpu: timesBetween(before, readProcessTimes(groups)) };
  };
  const post = (body: Buffer, imported: number) =>
    take(async () => {
      const response = await postTimed(api.port, '/api/v1/import', tokenOf(user), body);
      if (response.status !== 200 || !response.text.startsWith(`{"imported":${imported},`))
        throw new Error(response.text);
      return response.ms;
    });
  const merge = await post(bodies.merge, entries);
  const again = await post(bodies.merge, 0);
  const replace = await post(bodies.replace, entries);
  const rows = await readRows(url, user);
  const copy = await take(() => timePsql(url, `copy bookmarks (user_id, ${COLUMNS}) from stdin`, [rows]));
  await runPsql(url, `delete from bookmarks where user_id in (${user}, ${copyOf(user)})`);
  await runPsql(url, 'vacuum bookmarks');
  return { merge, 'merge again': again, replace, copy };
}

/** Returns the id of the user who gets a copy of the rows of `user`. */
const copyOf = (user: number): number => user + 1_000_000;

/** Returns a user's rows in COPY's format, with the id of the user who gets the copy. */
const readRows = (url: string, user: number) =>
  runPsql(
    url,
    `copy (select ${copyOf(user)}, ${COLUMNS} from bookmarks where user_id = ${user} order by id) to stdout`,
  );

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

  return (['merge', 'merge again', 'replace'] as const).map((step) =>
    lineOf(step, entries, rounds, step === 'merge again' ? 1 : 0.45),
  );
}

/**
 * Makes a line of the table. `mark` is the lowest accepted value of each of two ratios: COPY's time divided by the
 * step's time, and COPY's CPU time divided by the step's CPU time in all processes.
 */
function lineOf(step: Step, entries: number, rounds: readonly Record<Step, Taken>[], mark: number): Line {
  const ms = (of: Step) => spreadOf(rounds.map((round) => round[of].ms));
  const micros = (of: Step, group: string) => (round: Record<Step, Taken>) =>
    ((round[of].cpu[group] ?? 0) * 1_000) / entries;
  const cpu = (of: Step, groups: readonly string[]) =>
    Object.fromEntries(groups.map((group) => [group, spreadOf(rounds.map(micros(of, group)))]));
  const ratio = spreadOf(rounds.map((round) => round.copy.ms / round[step].ms));
  const cpuOf = ({ cpu }: Taken) => Object.values(cpu).reduce((sum, each) => sum + each, 0);
  const cpuRatio = spreadOf(rounds.map((round) => (round.copy.cpu.postgres ?? 0) / cpuOf(round[step])));
  return {
    bench: 'import',
    what: `${entries.toLocaleString('en')} entries, ${step}`,
    unit: 'ms',
    service: ms(step),
    reference: ms('copy'),
    referenceName: 'COPY of the same rows',
    ratio,
    mark: { text: `≥ ${mark}, also by CPU`, reached: Math.min(ratio.median, cpuRatio.median) >= mark },
    cpu: cpu(step, ['api', 'worker', 'postgres']),
    referenceCpu: cpu('copy', ['postgres']),
  };
}

export const importAll: Bench = {
  name: 'import',
  async run(plan) {
    if (plan.quick) return await runSize(plan, 1_000, plan.effort);
    const small = await runSize(plan, 10_000, plan.effort);
    return [...small, ...(await runSize(plan, 100_000, plan.effort))];
  },
};
