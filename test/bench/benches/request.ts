import type { Bench, Plan } from '../harness/bench.ts';
import { postTimed } from '../harness/http-exchange.ts';
import { sampleLoad } from '../harness/load.ts';
import { runPsql } from '../harness/programs.ts';
import { readScriptCalls } from '../harness/redis-calls.ts';
import { openReference, openReplica, startReplica } from '../harness/replica.ts';
import { cpuLineOf } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';
import { ADDING, openCollection, TEN_THOUSAND, tokensOf, usersFrom } from './collection.ts';

/** Measures the fixed cost of every request (token, limit, headers), and the cost of a refused request. */

const CONNECTIONS = 32;

export const request: Bench = {
  name: 'request',
  async run(plan) {
    const url = await openCollection(plan);
    await using replica = await openReplica(plan, url);
    await using reference = await openReference(plan, url);
    const users = usersFrom(ADDING.first, ADDING.count);
    const processes = {
      postgres: [plan.environment.postgresPid],
      redis: [plan.environment.redis.pid],
    };
    const service: Side = {
      name: 'profile',
      processes: { api: [replica.pid], ...processes },
      run: (seconds) =>
        sampleLoad({
          port: replica.port,
          path: '/api/v1/user/profile',
          bodies: ['{}'],
          tokens: users.flatMap(tokensOf),
          connections: CONNECTIONS,
          seconds,
          expectStatus: 200,
        }),
    };
    const bare = (name: string, path: string): Side => ({
      name,
      processes: { api: [reference.pid], ...processes },
      run: (seconds) =>
        sampleLoad({
          port: reference.port,
          path,
          bodies: users.map((user) => JSON.stringify({ user })),
          tokens: [],
          connections: CONNECTIONS,
          seconds,
          expectStatus: 200,
        }),
    });
    const row = bare('bare Fastify, one row', '/row');
    const limitedRow = bare('bare Fastify, one row, one script in Redis, our headers', '/limited-row');
    const [ours, withRow, withLimit] = await compareSides([service, row, limitedRow], plan.effort);
    return [
      cpuLineOf({ bench: 'request', what: 'profile, compared with one row' }, ours!, withRow!, 0.55),
      cpuLineOf(
        { bench: 'request', what: 'profile, compared with one row and one script in Redis' },
        ours!,
        withLimit!,
        0.85,
      ),
    ];
  },
};

export const refused: Bench = {
  name: 'refused',
  async run(plan) {
    const url = await openCollection(plan);
    await using replica = await startReplica(plan.environment, url, {
      RATE_LIMIT_REQUESTS: '100',
      RATE_LIMIT_WINDOW_SECONDS: '3600',
    });
    await using reference = await openReference(plan, url);
    const load = {
      port: replica.port,
      path: '/api/v1/user/profile',
      bodies: ['{}'],
      tokens: tokensOf(TEN_THOUSAND).slice(0, 1),
      connections: CONNECTIONS,
    };
    await exhaust(load.port, load.path, load.tokens[0]!);

    const calls = { redis: 0, postgres: 0, responses: 0 };
    const service: Side = {
      name: '429',
      processes: { api: [replica.pid] },
      run: async (seconds) => {
        const before = await countCalls(plan, url);
        const sample = await sampleLoad({ ...load, seconds, expectStatus: 429 });
        const after = await countCalls(plan, url);
        calls.redis += after.redis - before.redis;
        calls.postgres += after.postgres - before.postgres;
        calls.responses += sample.operations;
        return sample;
      },
    };
    const bare: Side = {
      name: 'bare Fastify, JSON echo',
      processes: { api: [reference.pid] },
      run: (seconds) =>
        sampleLoad({ ...load, port: reference.port, path: '/echo', tokens: [], seconds, expectStatus: 200 }),
    };
    const [ours, theirs] = await compareSides([service, bare], plan.effort);
    const note = `${calls.responses} refusals: ${calls.redis} Redis calls, ${calls.postgres} transactions`;
    const line = cpuLineOf({ bench: 'refused', what: '429', note }, ours!, theirs!, 0.6);
    const isQuiet = calls.redis + calls.postgres < calls.responses / 1_000;
    return [{ ...line, mark: { text: '≥ 0.6 by CPU, no calls', reached: line.mark!.reached && isQuiet } }];
  },
};

/** Sends requests until the token's rate limit is used up. */
async function exhaust(port: number, path: string, token: string): Promise<void> {
  const send = () => postTimed(port, path, token, Buffer.from('{}'));
  for (let sent = await send(); sent.status !== 429; sent = await send()) {
    if (sent.status !== 200) throw new Error(`${path} was answered ${sent.status}: ${sent.text}`);
  }
}

/** Counts the calls of the limiter's script and the transactions of the database. Counting adds a few transactions. */
async function countCalls({ environment }: Plan, url: string) {
  const transactions = await runPsql(
    url,
    'select xact_commit + xact_rollback from pg_stat_database where datname = current_database()',
  );
  return { redis: await readScriptCalls(environment.redis.url), postgres: Number(transactions) };
}
