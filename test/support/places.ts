import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** A bookmark in a profile of Firefox. Times are in whole seconds since 1970, as in bookmark files. */
export interface Place {
  /** The names of the bookmark's folders, outermost first, without Firefox's own root folders. */
  path: string[];
  title: string;
  url: string;
  tags: string[];
  added: number;
  modified: number;
}

interface Row {
  id: number;
  parent: number;
  guid: string;
  title: string | null;
  dateAdded: number;
  lastModified: number;
  url: string | null;
}

const ROOTS = ['root________', 'menu________', 'toolbar_____', 'unfiled_____', 'mobile______'];
const MICROSECONDS = 1_000_000;

/** Returns the bookmarks in the database of a profile, sorted. Firefox must have quit. */
export function readPlaces(profile: string): Place[] {
  using database = new DatabaseSync(join(profile, 'places.sqlite'));
  const rows = database
    .prepare(
      `select b.id, b.parent, b.guid, b.title, b.dateAdded, b.lastModified, p.url
       from moz_bookmarks b left join moz_places p on p.id = b.fk where b.type <> 3`,
    )
    .all() as unknown as Row[];
  const byId = new Map(rows.map((row) => [row.id, row]));
  const pathOf = (row: Row): string[] => {
    const parent = byId.get(row.parent)!;
    return ROOTS.includes(parent.guid) ? [] : [...pathOf(parent), parent.title ?? ''];
  };
  // A tag is a folder below the root of tags. Each of its entries has a url.
  const tagRoot = rows.find(({ guid }) => guid === 'tags________')!.id;
  const links = rows.filter(({ url }) => url !== null);
  const isTagging = ({ parent }: Row) => byId.get(parent)!.parent === tagRoot;
  const tags = Map.groupBy(links.filter(isTagging), ({ url }) => url);
  const places = links
    .filter((row) => !isTagging(row))
    .map((row) => ({
      path: pathOf(row),
      title: row.title ?? '',
      url: row.url!,
      tags: (tags.get(row.url) ?? []).map(({ parent }) => byId.get(parent)!.title!).sort(),
      added: Math.floor(row.dateAdded / MICROSECONDS),
      modified: Math.floor(row.lastModified / MICROSECONDS),
    }));
  return sortPlaces(places);
}

/** Sorts by url, then by folders. */
export const sortPlaces = (places: Place[]): Place[] =>
  places.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));

const keyOf = ({ url, path }: Place): string => JSON.stringify([url, path]);
