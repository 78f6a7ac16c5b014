import { PAGE_BYTES } from './bookmarks.ts';
import type { Database } from './driver/database.ts';
import { onlyRow } from './outcomes.ts';

/**
 * Exports the data of a user for a data-protection request: the account, identities, invites, tokens, tags and
 * bookmarks. The export has no secrets and no hashes.
 */

const PAGE_SIZE = 500;

/** Returns a user's export: the text of one JSON object, in chunks. Returns undefined if no user has this address. */
export async function openUserExport(
  db: Database,
  emailKey: string,
): Promise<AsyncIterable<string> | undefined> {
  const head = await readHead(db, emailKey);
  return head && writeExport(db, head);
}

/** Everything in the export except the bookmarks. */
interface ExportHead {
  userId: number;
  /** The highest id of the bookmarks to export. */
  lastId: number;
  /** JSON text of an object. */
  json: string;
}

/** Reads the head of an export. Returns undefined if no user has this address. */
async function readHead(db: Database, emailKey: string): Promise<ExportHead | undefined> {
  const [user] = await db.read(
    (sql) => sql<{ id: number }[]>`select id from users where email_key = ${emailKey}`,
  );
  if (user === undefined) return undefined;
  const { id } = user;
  const rows = await db.read(
    (sql) => sql<{ lastId: number; json: string }[]>`
      select
        (select coalesce(max(id), 0) from bookmarks where user_id = ${id}) as "lastId",
        json_build_object(
          'exported_at', render_time(now()),
          'account', (
            select json_build_object('id', id, 'email', email, 'created_at', render_time(created_at))
            from users where id = ${id}
          ),
          'tier', (
            select json_build_object('is_premium', is_premium, 'suspended_at', render_time(suspended_at))
            from accounts where user_id = ${id}
          ),
          'identities', (
            select coalesce(json_agg(json_build_object(
              'issuer', issuer, 'subject', subject, 'email', email, 'created_at', render_time(created_at)
            ) order by created_at), '[]')
            from identities where user_id = ${id}
          ),
          'invites', (
            select coalesce(json_agg(json_build_object(
              'email', email, 'expires_at', render_time(expires_at)
            ) order by expires_at), '[]')
            from invites where email_key = ${emailKey}
          ),
          'tokens', (
            select coalesce(json_agg(json_build_object(
              'id', id, 'kind', kind, 'scope', scope, 'name', name, 'app_name', app_name, 'client', client,
              'created_at', render_time(created_at), 'last_used_at', render_time(last_used_at),
              'expires_at', case
                when isfinite(coalesce(suspended_expires_at, expires_at))
                then render_time(coalesce(suspended_expires_at, expires_at))
              end
            ) order by id), '[]')
            from tokens where user_id = ${id}
          ),
          'tags', (
            select coalesce(json_agg(json_build_object(
              'id', id, 'name', name, 'bookmark_count', bookmark_count, 'created_at', render_time(created_at)
            ) order by id), '[]')
            from tags where user_id = ${id}
          )
        )::text as json`,
  );
  return { userId: id, ...onlyRow(rows) };
}

async function* writeExport(db: Database, { userId, lastId, json }: ExportHead): AsyncGenerator<string> {
  const jsonWithoutBrace = json.slice(0, -1);
  yield `${jsonWithoutBrace},"bookmarks":[`;
  let separator = '';
  for (let after = 0; after < lastId; ) {
    const from = after;
    const rows = await db.read(
      (sql) => sql<{ bookmarks: string; last: number | null }[]>`
        select bookmarks, last_id as last
        from read_page(
          p_user_id => ${userId}, p_after => ${from}, p_last => ${lastId}, p_limit => ${PAGE_SIZE},
          p_bytes => ${PAGE_BYTES}
        )`,
    );
    const { bookmarks, last } = onlyRow(rows);
    // If the page is empty, the remaining bookmarks up to `lastId` have been deleted meanwhile.
    if (last === null) break;
    yield separator + bookmarks;
    separator = ',';
    after = last;
  }
  yield ']}';
}
