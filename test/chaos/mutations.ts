import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from './fleet.ts';
import type { Mutation } from './run.ts';

/** Intentional defects. A test runs a fleet with one of them, and the checks must find it. */

/** Replaces fragments of a SQL function. Throws if a fragment is missing, because then nothing would change. */
async function rewrite({ sql }: Fleet, name: string, parts: readonly [string, string][]): Promise<void> {
  const [row] = await sql<{ text: string }[]>`select pg_get_functiondef(${name}::regproc) as text`;
  let text = row!.text;
  for (const [from, to] of parts) {
    if (!text.includes(from)) throw new Error(`${name} holds no ${from}`);
    text = text.replace(from, () => to);
  }
  await sql.unsafe(text);
}

const COUNT = 'update accounts set bookmark_count = bookmark_count + 1, unpacked = unpacked + 1';

/** An add draws its id without the user's lock, so bookmarks may become visible out of the order of their ids. */
export const withoutUserLock: Mutation = {
  name: 'the user lock removed',
  async apply(fleet) {
    await rewrite(fleet, 'add_bookmark', [
      ['lock_account', 'token_is_valid'],
      [COUNT, 'select id_floor, unpacked into v_floor, v_unpacked from accounts'],
      ['returning id_floor, unpacked into v_floor, v_unpacked', ''],
      // Packing texts into blocks also takes the lock, so it is turned off.
      ["v_unpacked >= limit_of('block_bookmarks')", 'false'],
      // The branch for tags also takes the lock, so it is turned off too.
      ['cardinality(p_tag_keys) > 0 then', 'false then'],
      // Sometimes delays a transaction after it has drawn its id and before it commits.
      [
        'end\n$function$',
        `perform pg_sleep(random() / 4);
        ${COUNT} where user_id = p_user_id;
        end $function$`,
      ],
    ]);
  },
};

/** An edit does not check whether the bookmark still has the version that the edit's writer read. */
export const withoutComparison: Mutation = {
  name: 'the comparison of versions removed',
  apply: (fleet) => rewrite(fleet, 'edit_bookmark', [['v_updated_at <> p_if_updated_at', 'false']]),
};

/**
 * In a `publish` command, the end of the name of the channel for notifications. The channels of heartbeats have longer
 * names, so heartbeats still arrive.
 */
const CHANNEL = 'bookmarks:wakes\r\n';

/** Notifications go to a channel without subscribers. */
export const withoutWakes: Mutation = {
  name: 'notifications turned off',
  onRedisRequest(chunk) {
    for (let at = chunk.indexOf('publish'); at >= 0; at = chunk.indexOf('publish', at + 1)) {
      const channel = chunk.indexOf(CHANNEL, at);
      if (channel >= 0) chunk.write('x', channel);
    }
  },
};

/** Notifications about changes do not reach other replicas. Only polls of `/bookmarks/changes` wait for them. */
export const withoutWakesOfChanges: Mutation = {
  name: 'notifications of changes turned off',
  onRedisRequest(chunk) {
    for (let at = chunk.indexOf(CHANGES_CHANNEL); at >= 0; at = chunk.indexOf(CHANGES_CHANNEL, at + 1)) {
      chunk.write('x', at + 1);
    }
  },
};

const CHANGES_CHANNEL = '\nchanges:';

/** An edit is not recorded as a change. */
export const withoutChangeRow: Mutation = {
  name: 'a change row that is not written',
  apply: (fleet) =>
    rewrite(fleet, 'edit_bookmark', [["perform note_changes(p_user_id, 'bookmark', array[p_id]);", 'null;']]),
};

/** An edit draws its revision long before it has the lock, so edits with a higher revision may commit first. */
export const withUnlockedNumbers: Mutation = {
  name: 'revisions drawn outside the lock',
  async apply(fleet) {
    const { sql } = fleet;
    const [row] = await sql<{ first: string }[]>`select min_id_now() + 1000000000 as first`;
    await sql.unsafe(`create sequence chaos_numbers increment by 1000 start with ${row!.first}`);
    await rewrite(fleet, 'note_changes', [
      [
        'update accounts set last_change = greatest(last_change, v_min_revision) + cardinality(p_object_ids)',
        `v_last_revision := coalesce(nullif(current_setting('chaos.number', true), '')::bigint, nextval('chaos_numbers'));
        update accounts set last_change = greatest(last_change, v_last_revision)`,
      ],
      ['returning last_change into v_last_revision', ''],
    ]);
    await rewrite(fleet, 'edit_bookmark', [
      [
        '\nbegin\n',
        `
        begin
          perform set_config('chaos.number', nextval('chaos_numbers')::text, true);
          -- A batch already has the lock.
          perform pg_sleep(case when current_query() like '%write_batch%' then 0 else random() * 3 end);
        `,
      ],
    ]);
  },
};

/** Readers of changes do not learn that a collection was replaced. */
export const withoutGenerations: Mutation = {
  name: 'a replace that keeps the generation',
  apply: (fleet) =>
    rewrite(fleet, 'import_bookmarks', [
      ['generation = generation + p_replace::integer', 'generation = generation'],
    ]),
};

/** Staged imports run again after they are done. The database's own checks against a second run are removed. */
export const withDuplicatedJobs: Mutation = {
  name: 'a duplicated job',
  async apply(fleet) {
    await rewrite(fleet, 'import_bookmarks', [
      ["and state = 'queued'", ''],
      ['if result is not null then', 'if false then'],
      ['if not p_replace then', 'if false then'],
    ]);
    await rewrite(fleet, 'keep_response', [
      [
        'insert into idempotency_keys',
        'delete from idempotency_keys where user_id = p_user_id and key = p_key;\n  insert into idempotency_keys',
      ],
    ]);
    await rewrite(fleet, 'end_import', [
      ['delete from import_chunks where user_id = p_user_id and import_id = p_import_id;', ''],
    ]);
  },
  during: repeatJobs,
};

/**
 * Makes an import look like one whose job was lost, so that the sweep queues it again. Returns false if another import
 * of the same user is in progress.
 */
async function queueAgain(sql: Fleet['sql'], id: string): Promise<boolean> {
  try {
    await sql`
      update imports set state = 'queued', result = null, touched_at = now() - interval '10 seconds'
      where id = ${id}`;
    return true;
  } catch (error) {
    if ((error as { constraint_name?: string }).constraint_name === 'imports_one_at_a_time') return false;
    throw error;
  }
}

async function repeatJobs({ sql }: Fleet, signal: AbortSignal): Promise<void> {
  const repeated = new Set<string>();
  while (!signal.aborted) {
    const done = await sql<{ id: string }[]>`
      select id from imports where state = 'done' and id in (select import_id from import_chunks)`;
    for (const { id } of done.filter((each) => !repeated.has(each.id))) {
      if (await queueAgain(sql, id)) repeated.add(id);
    }
    await sleep(200, undefined, { signal }).catch(() => {});
  }
}

/** A proxy cuts off the end of exports. What remains is valid HTTP and valid JSON with a matching count. */
export const withTruncatedExports: Mutation = {
  name: 'a truncated export',
  async readerFetch(input, init) {
    const response = await fetch(input, init);
    if (!String(input).endsWith('/export') || !response.ok) return response;
    const whole = (await response.json()) as { bookmarks: unknown[]; exported_at: string };
    const bookmarks = whole.bookmarks.slice(0, Math.ceil(whole.bookmarks.length / 2));
    return Response.json({ ...whole, bookmarks, count: bookmarks.length }, { headers: response.headers });
  },
};
