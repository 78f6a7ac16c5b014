import { Command } from 'commander';
import { add } from './benches/add.ts';
import { deleteBookmarks, edit } from './benches/change-one.ts';
import { digest } from './benches/digest.ts';
import { exportAll } from './benches/export.ts';
import { growth } from './benches/growth.ts';
import { idle } from './benches/idle.ts';
import { importAll } from './benches/import.ts';
import { importsBeside } from './benches/imports-beside.ts';
import { mixed } from './benches/mixed.ts';
import { list, list500, sync100 } from './benches/pages.ts';
import { pollEnds } from './benches/poll-ends.ts';
import { refused, request } from './benches/request.ts';
import { search } from './benches/search.ts';
import { sharded } from './benches/sharded.ts';
import { waiters } from './benches/waiters.ts';
import { web } from './benches/web.ts';
import type { Bench, Plan } from './harness/bench.ts';
import { openEnvironment } from './harness/environment.ts';
import { requirePrograms } from './harness/programs.ts';
import { formatTable } from './harness/report.ts';
import { runBenches } from './harness/run-benches.ts';

/**
 * `npm run bench -- [NAME…]` compares the service with Postgres, Fastify and other programs that it uses. A comparison
 * runs both sides on the same rows.
 */

const BENCHES: readonly Bench[] = [
  request,
  refused,
  add,
  edit,
  deleteBookmarks,
  list,
  list500,
  sync100,
  search,
  importAll,
  exportAll,
  digest,
  importsBeside,
  waiters,
  idle,
  pollEnds,
  mixed,
  web,
  growth,
  sharded,
];

/**
 * A smoke run only shows that every benchmark works. With these settings, a replica does not refuse requests when the
 * machine is busy.
 */
const NEVER_OVERLOADED = { OVERLOAD_EVENT_LOOP_MS: '0', OVERLOAD_POOL_WAIT_MS: '0' };

interface Options {
  json?: boolean;
  quick?: boolean;
  large?: boolean;
  rounds: string;
  seconds: string;
}

function choose(names: readonly string[]): readonly Bench[] {
  const unknown = names.filter((name) => !BENCHES.some((bench) => bench.name === name));
  if (unknown.length === 0)
    return names.length === 0 ? BENCHES : BENCHES.filter(({ name }) => names.includes(name));
  const known = BENCHES.map(({ name }) => name).join(', ');
  throw new Error(`no bench named ${unknown.join(', ')}; there are: ${known}`);
}

async function runAll(benches: readonly Bench[], options: Options): Promise<string[]> {
  const quick = options.quick === true;
  await using environment = await openEnvironment({
    isSmokeRun: quick,
    settings: quick ? NEVER_OVERLOADED : {},
  });
  const effort = quick
    ? { rounds: 1, seconds: 0.2, warmUpSeconds: 0 }
    : { rounds: Number(options.rounds), seconds: Number(options.seconds), warmUpSeconds: 2 };
  const plan: Plan = { environment, effort, quick, large: options.large === true };
  return await runBenches(benches, plan, (lines) =>
    console.log(options.json ? JSON.stringify(lines) : `${formatTable(lines, !quick)}\n`),
  );
}

await new Command('bench')
  .argument('[NAME...]', `some of: ${BENCHES.map(({ name }) => name).join(', ')}`)
  .option('--json', 'print all figures as JSON, a line for each benchmark')
  .option('--quick', 'a smoke run: everything small and once; no marks')
  .option('--large', 'growth up to ten million bookmarks: takes 24 GB and a quarter of an hour')
  .option('--rounds <n>', 'how often each side runs, in turn', '5')
  .option('--seconds <n>', 'how long each run is', '4')
  .action(async (names: string[], options: Options) => {
    await requirePrograms();
    const failed = await runAll(choose(names), options);
    if (failed.length === 0) return;
    console.error(`FAILED: ${failed.join(', ')}`);
    process.exitCode = 1;
  })
  .parseAsync();
