import type { Fleet } from './fleet.ts';
import type { Collection } from './journal.ts';

/** Returns the data of each user, by user id. Reads it from the tables, without any code of the service. */
export async function readCollections({ sql }: Fleet): Promise<Map<number, Collection>> {
  const tags = await sql<TagRow[]>`
    select user_id::float8 as user, id::float8, name
    from tags
    order by user_id, name_key collate "C"`;
  const bookmarks = await sql<BookmarkRow[]>`
    select user_id::float8 as user, id::float8, url, title, comment,
      to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at,
      to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as updated_at,
      tag_ids::float8[]
    from bookmarks
    order by user_id, id`;
  const collections = new Map<number, Collection>();
  const of = (user: number): Collection => {
    const known = collections.get(user) ?? { bookmarks: [], tags: [] };
    collections.set(user, known);
    return known;
  };
  for (const { user, id, name } of tags) of(user).tags.push({ id, name });
  for (const { user, id, url, title, comment, tag_ids: carried, created_at, updated_at } of bookmarks) {
    // The row of a bookmark may still contain the id of a deleted tag. The service does not show deleted tags.
    const shown = of(user).tags.filter((tag) => carried.includes(tag.id));
    of(user).bookmarks.push({ id, url, title, comment, tags: shown, created_at, updated_at });
  }
  return collections;
}

interface TagRow {
  user: number;
  id: number;
  name: string;
}

interface BookmarkRow {
  user: number;
  id: number;
  url: string;
  title: string;
  comment: string;
  created_at: string;
  updated_at: string;
  tag_ids: number[];
}
