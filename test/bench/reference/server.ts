import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type FastifyReply, fastify } from 'fastify';
import { Redis } from 'ioredis';
import postgres from 'postgres';

/**
 * The reference for comparisons: plain Fastify with one simple statement per request, on straightforward tables (schema
 * `naive`). It has no tokens, validation or log. Only `/limited-row` has a rate limit.
 */

const sql = postgres(process.env.DATABASE_URL!, {
  max: 10,
  types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
});
const app = fastify();

interface Position {
  user: number;
  cursor: number;
  limit: number;
}

app.post('/echo', async (request) => request.body);

app.post<{ Body: { user: number } }>('/row', async ({ body }) => {
  const [row] = await sql`select email, created_at from users where id = ${body.user}`;
  return row;
});

const SCRIPT = readFileSync(
  new URL('../../../src/coordination/redis/sliding-window.lua', import.meta.url),
  'utf8',
);

/** The limit per user. The load cannot reach this many requests in the window. */
const LIMIT = 100_000;
const WINDOW_SECONDS = 60;

const redis = new Redis(process.env.REDIS_URL!, { scripts: { admit: { lua: SCRIPT, numberOfKeys: 1 } } });

type Admit = (key: string, points: number, windowSeconds: number, limit: number) => Promise<number[]>;
const { admit } = redis as unknown as { admit: Admit };

/** Sets the response headers that the service also sends. `resetMs` is the time until a request leaves the window. */
function setHeaders(reply: FastifyReply, admitted: number, resetMs: number): void {
  reply.headers({
    'x-request-id': randomUUID(),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-ratelimit-limit': LIMIT,
    'x-ratelimit-remaining': LIMIT - admitted,
    'x-ratelimit-reset': Math.ceil((Date.now() + resetMs) / 1_000),
  });
}

/** Does the same as `/row`. Also calls the limiter's script once, and sends the service's headers. */
app.post<{ Body: { user: number } }>('/limited-row', async ({ body }, reply) => {
  const [admitted, resetMs] = await admit.call(redis, `bench:${body.user}`, 1, WINDOW_SECONDS, LIMIT);
  setHeaders(reply, admitted!, resetMs!);
  const [row] = await sql`select email, created_at from users where id = ${body.user}`;
  return row;
});

app.post<{ Body: { user: number; url: string; title: string; comment: string } }>(
  '/add',
  async ({ body }) => {
    const [row] = await sql`
    insert into naive.bookmarks (user_id, url, title, comment)
    values (${body.user}, ${body.url}, ${body.title}, ${body.comment})
    returning id, url, title, comment, created_at, updated_at`;
    return row;
  },
);

app.post<{ Body: { user: number; id: number; title: string } }>('/edit', async ({ body }) => {
  const [row] = await sql`
    update naive.bookmarks set title = ${body.title}, updated_at = now()
    where user_id = ${body.user} and id = ${body.id}
    returning id, url, title, comment, created_at, updated_at`;
  return row;
});

app.post<{ Body: { user: number; id: number } }>('/delete', async ({ body }) => {
  await sql`delete from naive.bookmarks where user_id = ${body.user} and id = ${body.id}`;
  return { id: body.id };
});

app.post<{ Body: Position }>('/list', async ({ body }) => {
  const bookmarks = await sql`
    select b.id, b.url, b.title, b.comment, b.created_at, b.updated_at, (
      select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by t.name), '[]')
      from naive.bookmark_tags bt
      join naive.tags t on t.id = bt.tag_id
      where bt.bookmark_id = b.id
    ) as tags
    from naive.bookmarks b
    where b.user_id = ${body.user} and b.id > ${body.cursor}
    order by b.id
    limit ${body.limit}`;
  return { bookmarks, has_more: bookmarks.length === body.limit };
});

/** Held polls by user. */
const held = new Map<number, Set<() => void>>();

app.post<{ Body: Position }>('/hold', async ({ body }, reply) => {
  const waiting = held.get(body.user) ?? new Set();
  held.set(body.user, waiting);
  let end = () => {};
  const woken = new Promise<void>((resolve) => {
    end = resolve;
  });
  waiting.add(end);
  const timer = setTimeout(end, 29_000);
  reply.raw.once('close', end);
  await woken;
  reply.raw.off('close', end);
  clearTimeout(timer);
  waiting.delete(end);
  const bookmarks = await sql`
    select id, url, title, comment, created_at, updated_at
    from naive.bookmarks
    where user_id = ${body.user} and id > ${body.cursor}
    order by id
    limit ${body.limit}`;
  return { bookmarks, cursor: bookmarks.at(-1)?.id ?? body.cursor };
});

app.post<{ Body: { user: number; url: string } }>('/wake', async ({ body }) => {
  await sql`insert into naive.bookmarks (user_id, url, title, comment) values (${body.user}, ${body.url}, '', '')`;
  for (const end of held.get(body.user) ?? []) end();
  return {};
});

await app.listen({ host: '127.0.0.1', port: 0 });
process.send!(Number(new URL(app.listeningOrigin).port));
