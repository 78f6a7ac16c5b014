import { writeFileSync } from 'node:fs';
import type { Bench, Plan } from '../harness/bench.ts';
import { issueTokens, populate, settle, tokenOf } from '../harness/collections.ts';
import { drainTimed } from '../harness/http-exchange.ts';
import { readPeakBytes, readResidentBytes } from '../harness/process-time.ts';
import { timePsql } from '../harness/programs.ts';
import { openReplica } from '../harness/replica.ts';
import { type Line, lineOf } from '../harness/report.ts';
import { compareSides, ratioOf, type Side } from '../harness/rounds.ts';
import { HUNDRED_THOUSAND, openCollection, sizesOf, TEN_THOUSAND } from './collection.ts';

/** Exports whole collections, and writes the same JSON with psql. */

/** The id of the user with a million bookmarks, in a database of its own. */
const MILLION = 1;
const MEMORY_BYTES = 64 * 1_048_576;

async function openMillion({ environment }: Plan): Promise<string> {
  return environment.database('million', async (url) => {
    await populate(url, { firstUser: MILLION, users: 1, bookmarks: 1_000_000, tags: 1_000 });
    await issueTokens(url, MILLION, 1);
    await settle(url);
  });
}

interface Collection {
  url: string;
  user: number;
  bookmarks: number;
}

/** Returns SQL that builds the fields of an export with Postgres's own functions, from the stored rows. */
const jsonOf = (user: number): string => `
  select row_to_json(b)
  from (
    select id, url, title, comment, tags::json as tags, created_at, updated_at
    from bookmarks
    where user_id = ${user}
    order by id
  ) b`;

async function runExport(plan: Plan, { url, user, bookmarks }: Collection): Promise<Line> {
  const { postgresPid } = plan.environment;
  await using replica = await openReplica(plan, url);
  let bytes = 0;
  const service: Side = {
    name: 'export',
    processes: { api: [replica.pid], postgres: [postgresPid] },
    run: async () => {
      const drained = await drainTimed(replica.port, '/api/v1/export', tokenOf(user));
      bytes = drained.bytes;
      return { rate: bytes / drained.ms / 1_000, operations: bookmarks };
    },
  };
  const psql: Side = {
    name: 'psql, COPY of row_to_json to /dev/null',
    processes: { postgres: [postgresPid] },
    run: async () => {
      return {
        rate: bytes / (await timePsql(url, `copy (${jsonOf(user)}) to stdout`)) / 1_000,
        operations: bookmarks,
      };
    },
  };
  await service.run(1);
  const restBytes = readResidentBytes(replica.pid);
  writeFileSync(`/proc/${replica.pid}/clear_refs`, '5');
  const rounds = bookmarks > 500_000 ? Math.min(3, plan.effort.rounds) : plan.effort.rounds;
  const [ours, theirs] = await compareSides([service, psql], { ...plan.effort, rounds });
  const growth = readPeakBytes(replica.pid) - restBytes;
  const what = `${bookmarks.toLocaleString('en')} bookmarks`;
  const note = `${(bytes / 1e6).toFixed(0)} MB; memory +${(growth / 1_048_576).toFixed(0)} MiB`;
  const line = lineOf(
    { bench: 'export', what, unit: 'MB/s', note },
    ours!,
    theirs!,
    ratioOf(ours!, theirs!),
    0.6,
  );
  const isReached = line.mark!.reached && growth <= MEMORY_BYTES;
  return { ...line, mark: { text: '≥ 0.6, +64 MiB', reached: isReached } };
}

export const exportAll: Bench = {
  name: 'export',
  async run(plan) {
    const url = await openCollection(plan);
    const { ten, hundred } = sizesOf(plan);
    const lines = [
      await runExport(plan, { url, user: TEN_THOUSAND, bookmarks: ten }),
      await runExport(plan, { url, user: HUNDRED_THOUSAND, bookmarks: hundred }),
    ];
    if (plan.quick) return lines;
    const million = await openMillion(plan);
    return [...lines, await runExport(plan, { url: million, user: MILLION, bookmarks: 1_000_000 })];
  },
};
