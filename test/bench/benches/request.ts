import type { Bench, Plan } from '../harness/bench.ts';
import { issueTokens, populate, settle, tokenOf } from '../harness/collections.ts';
import { postTimed } from '../harness/http-exchange.ts';
import { sampleLoad } from '../harness/load.ts';
import { runPsql } from '../harness/programs.ts';
import { readScriptCalls } from '../harness/redis-calls.ts';
import { openReference, openReplica, startReplica } from '../harness/replica.ts';
import { cpuLineOf } from '../harness/report.ts';
import { compareSides, type Side } from '../harness/rounds.ts';
import { ADDING, openCollection, tokensOf, usersFrom } from './collection.ts';

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

/** How many tokens are over their limit. A replica remembers each of them. */
const REFUSED_TOKENS = { users: 100, perUser: 100 };

export const refused: Bench = {
  name: 'refused',
  async run(plan) {
    const { perUser } = REFUSED_TOKENS;
    const users = plan.quick ? 10 : REFUSED_TOKENS.users;
    const url = await plan.environment.database('refused', async (newUrl) => {
      await populate(newUrl, { firstUser: 1, users, bookmarks: 10, tags: 5 });
      await issueTokens(newUrl, 1, users, perUser);
      await settle(newUrl);
    });
    await using replica = await startReplica(plan.environment, url, {
      RATE_LIMIT_REQUESTS: '1',
      RATE_LIMIT_WINDOW_SECONDS: '3600',
    });
    await using reference = await openReference(plan, url);
    const tokens = usersFrom(1, users).flatMap((user) =>
      Array.from({ length: perUser }, (_, number) => tokenOf(user, number)),
    );
    const load = {
      port: replica.port,
      path: '/api/v1/user/profile',
      bodies: ['{}'],
      tokens,
      connections: CONNECTIONS,
    };
    await exhaust(load.port, load.path, tokens);

    const calls = { redis: 0, postgres: 0, responses: 0 };
    const refusing = (name: string, ofTokens: string[]): Side => ({
      name,
      processes: { api: [replica.pid] },
      run: async (seconds) => {
        const before = await countCalls(plan, url);
        const sample = await sampleLoad({ ...load, tokens: ofTokens, seconds, expectStatus: 429 });
        const after = await countCalls(plan, url);
        calls.redis += after.redis - before.redis;
        calls.postgres += after.postgres - before.postgres;
        calls.responses += sample.operations;
        return sample;
      },
    });
    const bare: Side = {
      name: 'bare Fastify, JSON echo',
      processes: { api: [reference.pid] },
      run: (seconds) =>
        sampleLoad({ ...load, port: reference.port, path: '/echo', tokens: [], seconds, expectStatus: 200 }),
    };
    const one = refusing('429, one token', tokens.slice(0, 1));
    const all = refusing(`429, ${tokens.length} tokens`, tokens);
    const [ofOne, ofAll, theirs] = await compareSides([one, all, bare], plan.effort);
    const note = `${calls.responses} refusals: ${calls.redis} Redis calls, ${calls.postgres} transactions`;
    const isQuiet = calls.redis + calls.postgres < calls.responses / 1_000;
    return [ofOne!, ofAll!].map((ours) => {
      const line = cpuLineOf({ bench: 'refused', what: ours.name, note }, ours, theirs!, 0.6);
      return { ...line, mark: { text: '≥ 0.6 by CPU, no calls', reached: line.mark!.reached && isQuiet } };
    });
  },
};

/** Uses up the limit of each token, which is one request. */
async function exhaust(port: number, path: string, tokens: readonly string[]): Promise<void> {
  const send = async (token: string) => {
    const { status, text } = await postTimed(port, path, token, Buffer.from('{}'));
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${text}`);
  };
  for (let at = 0; at < tokens.length; at += CONNECTIONS)
    await Promise.all(tokens.slice(at, at + CONNECTIONS).map(send));
}

/** Counts the calls of the limiter's script and the transactions of the database. Counting adds a few transactions. */
async function countCalls({ environment }: Plan, url: string) {
  const transactions = await runPsql(
    url,
    'select xact_commit + xact_rollback from pg_stat_database where datname = current_database()',
  );
  return { redis: await readScriptCalls(environment.redis.url), postgres: Number(transactions) };
}
