import type { Bench, Plan } from '../harness/bench.ts';
import { issueTokens, populate, settle, tokenOf } from '../harness/collections.ts';
import { type LoadJob, sampleLoad } from '../harness/load.ts';
import { type Replica, startReplica } from '../harness/replica.ts';
import type { Line } from '../harness/report.ts';
import { compareSides, ratioOf, type Side } from '../harness/rounds.ts';
import { range } from './waiters.ts';

/**
 * Measures requests of the same hundred users while the number of other users' bookmarks grows from ten thousand to a
 * million, or with `--large` to ten million.
 */

const USERS = 100;
const EACH = 200;

const sizesOf = ({ quick, large }: Plan): number[] =>
  quick ? [1_000, 2_000] : [10_000, 1_000_000, ...(large ? [10_000_000] : [])];

async function openGrown({ environment, quick }: Plan, others: number): Promise<string> {
  return environment.database(`grown_${others}`, async (url) => {
    // Half of the other users come before the hundred users and half after, so that the hundred users are in the middle
    // of the tables.
    const half = { users: others / 200, bookmarks: 100, tags: 10 };
    await populate(url, { firstUser: 1_001, ...half });
    await populate(url, { firstUser: 1, users: USERS, bookmarks: quick ? 20 : EACH, tags: 20 });
    await populate(url, { firstUser: 1_001 + half.users, ...half });
    await issueTokens(url, 1, USERS);
    await settle(url);
  });
}

/** The requests to measure, by name. */
const KINDS: Record<string, { path: string; bodies: string[]; connections: number }> = {
  add: {
    path: '/api/v1/bookmarks/add',
    bodies: range(1, 997).map((n) => `{"url":"https://bench.example/${n}","tags":["Tag ${1 + (n % 20)}"]}`),
    connections: 16,
  },
  list: { path: '/api/v1/bookmarks/list', bodies: ['{"limit":100}'], connections: 8 },
  sync: { path: '/api/v1/bookmarks/sync', bodies: ['{"cursor":9007199254740991}'], connections: 32 },
  search: {
    path: '/api/v1/bookmarks/search',
    bodies: ['{"query":"server"}', '{"query":"ka lo"}'],
    connections: 8,
  },
};

export const growth: Bench = {
  name: 'growth',
  async run(plan) {
    const { environment, effort } = plan;
    const sizes = sizesOf(plan);
    await using stack = new AsyncDisposableStack();
    const replicas: Replica[] = [];
    for (const size of sizes) {
      const url = await openGrown(plan, size);
      replicas.push(stack.use(await startReplica(environment, url)));
    }
    const lines: Line[] = [];
    for (const [kind, { connections, ...request }] of Object.entries(KINDS)) {
      const sides = sizes.map((size, n): Side => {
        const job: Omit<LoadJob, 'seconds'> = {
          ...request,
          port: replicas[n]!.port,
          tokens: range(1, USERS).map((user) => tokenOf(user)),
          connections,
          expectStatus: 200,
        };
        return {
          name: size.toLocaleString('en'),
          processes: { api: [replicas[n]!.pid], postgres: [environment.postgresPid] },
          run: (seconds) => sampleLoad({ ...job, seconds }),
        };
      });
      const results = await compareSides(sides, effort);
      for (const [n, result] of results.entries()) {
        if (n === 0) continue;
        const before = results[n - 1]!;
        const ratio = ratioOf(result, before);
        lines.push({
          bench: 'growth',
          what: `${kind}: ${result.name} of others compared with ${before.name}`,
          unit: '/s',
          service: result.rate,
          reference: before.rate,
          ratio,
          mark: { text: '≥ 0.9', reached: ratio.median >= 0.9 },
          cpu: result.cpuMicros,
          referenceCpu: before.cpuMicros,
        });
      }
    }
    return lines;
  },
};
