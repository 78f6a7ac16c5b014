import postgres from 'postgres';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/store/driver/open.ts';
import { type CitusNode, copyShardedDatabase, nodeOf, type ShardedDatabase } from '../support/citus.ts';
import { runOn } from '../support/run-on.ts';
import { createPrincipal } from '../support/users.ts';

// A connection to a node lasts for half an hour or more, so memory that statements do not release would accumulate.

/**
 * After this many calls, a connection has loaded all metadata and plans that it needs. More than 64 added bookmarks are
 * packed into a block.
 */
const WARM_UP = 100;
const CALLS = 300;

/**
 * The limit for the growth of memory over all calls together. If each call kept one plan, memory would grow ten times
 * as much.
 */
const GROWTH_BYTES = 1_048_576;

let database: ShardedDatabase;
let userId: number;
let tokenHash: string;
let home: CitusNode;

beforeAll(async () => {
  database = await copyShardedDatabase(inject('citusUrl')!, inject('citusTemplate')!);
  const pool = await openDatabase({ url: database.url, max: 1 });
  const user = await createPrincipal(pool, { premium: true });
  await pool.close();
  userId = user.id;
  const [token] = await runOn<{ hash: string }>(
    database.url,
    `select encode(token_hash, 'hex') as hash from tokens where user_id = ${userId}`,
  );
  tokenHash = token!.hash;
  home = await nodeOf(database, user);
  return database.drop;
});

const bookmarkOf = (n: number) =>
  JSON.stringify({
    url: 'https://example.org',
    title: '',
    comment: '',
    search_text: '',
    url_key: `${n}`.padStart(32, '0'),
  });

describe.for<[what: string, call: string, values: (n: number) => unknown[]]>([
  ['a page', 'read_page($1, $2, 9007199254740991, 50, 1048576)', (n) => [n]],
  ['the newest', "read_newest($1, decode($2, 'hex'), 0, 50, 1048576)", () => [tokenHash]],
  ['changes', 'read_changes($1, 0, 0, 0, $2, 0, 100, false)', (n) => [n]],
  ['a search', 'find_texts($1, $2, null, null, null)', () => [['example']]],
  ['a token', "token_is_valid($1, decode($2, 'hex'))", () => [tokenHash]],
  [
    'a bookmark that is added',
    "add_bookmark($1, decode($2, 'hex'), $3::text::jsonb, array['Read'], array['read'], 10, 10, null, null)",
    (n) => [tokenHash, bookmarkOf(n)],
  ],
])('%s', ([, call, values]) => {
  test.for(['on the node with the rows', 'on another node'])(
    'does not accumulate memory in its connection to Postgres %s',
    async (where) => {
      const node =
        where === 'on the node with the rows' ? home : database.nodes.find(({ port }) => port !== home.port)!;
      const sql = postgres(node.url, { max: 1, onnotice: () => {} });
      onTestFinished(() => sql.end({ timeout: 0 }));
      const callOften = async (count: number) => {
        for (let n = 0; n < count; n++)
          await sql.unsafe(`select * from ${call}`, [userId, ...values(n)] as never[], { prepare: true });
      };
      const readBytes = async () => {
        const [memory] = await sql<{ bytes: number }[]>`
        select sum(total_bytes)::float8 as bytes from pg_backend_memory_contexts`;
        return memory!.bytes;
      };
      await callOften(WARM_UP);
      const before = await readBytes();
      await callOften(CALLS);
      expect((await readBytes()) - before).toBeLessThan(GROWTH_BYTES);
    },
  );
});
