import { runOn } from './database.ts';

/** Adds tags to an account directly in the database. No bookmark has them. */
export const fillTags = (databaseUrl: string, { id }: { id: number }, count: number): Promise<unknown> =>
  runOn(
    databaseUrl,
    `select next_id('tags_id_seq');
    insert into tags (user_id, id, name, name_key)
    select ${id}, nextval('tags_id_seq'), 'Tag ' || n, 'tag ' || n from generate_series(1, ${count}) n;
    update accounts set tag_count = ${count} where user_id = ${id}`,
  );

/**
 * Adds bookmarks to an account directly in the database, faster than any client could. They have no tags and no search
 * text, so a search for a word does not find them. Each has a comment of `commentLength` characters.
 */
export async function fill(
  databaseUrl: string,
  { id }: { id: number },
  count: number,
  commentLength = 42,
): Promise<void> {
  await runOn(
    databaseUrl,
    `select next_id('bookmarks_id_seq');
    insert into bookmarks (
      user_id, id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
    )
    select ${id}, nextval('bookmarks_id_seq'), date_trunc('second', now()), date_trunc('second', now()), gen_random_uuid(),
      'https://example.org/' || n, 'Bookmark ' || n, repeat('comment ', ${commentLength} / 8 + 1)::varchar(${commentLength}),
      '{}', '[]', ''
    from generate_series(1, ${count}) n;
    update accounts set bookmark_count = ${count} where user_id = ${id}`,
  );
}
