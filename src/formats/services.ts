import { nameOf } from './csv.ts';
import {
  type ForeignBookmark,
  isObject,
  isSet,
  type JsonObject,
  listOf,
  objectsIn,
  textOf,
} from './entry.ts';
import { readMarkup } from './markup.ts';
import { readDescription } from './netscape.ts';

/** Reads the JSON and XML of other services and programs. Some of them also export HTML, which `netscape.ts` reads. */

const tagIf = (condition: boolean, tag: string): string[] => (condition ? [tag] : []);

/**
 * Reads a post of Pinboard's `posts/all`. In such a post, `description` is the title and `extended` is the text. A
 * missing title or text is `false`.
 */
export const fromPinboard = (post: JsonObject): ForeignBookmark => ({
  url: post.href,
  title: post.description,
  comment: readDescription(textOf(post.extended)),
  tags: [...textOf(post.tags).split(/\s+/), ...tagIf(post.toread === 'yes', 'toread')],
  createdAt: post.time,
});

const POST: ReadonlySet<string> = new Set(['post']);

/** Parses the posts of Pinboard's XML. */
export const parsePinboardXml = (xml: string): ForeignBookmark[] =>
  [...readMarkup(xml, POST)].flatMap((token) => {
    if (typeof token === 'string' || token.isClosing) return [];
    // The XML keeps the tags in the attribute `tag`, and the JSON in the field `tags`.
    const { tag, ...post } = token.attributes;
    const bookmark = fromPinboard({ ...post, tags: tag });
    return [token.isTruncated ? { ...bookmark, omission: 'truncated' } : bookmark];
  });

/** Reads a bookmark from linkding's `/api/bookmarks/`. */
export const fromLinkding = (bookmark: JsonObject): ForeignBookmark => ({
  url: bookmark.url,
  title: bookmark.title || bookmark.website_title,
  comment: [bookmark.description || bookmark.website_description, bookmark.notes],
  tags: [
    ...listOf(bookmark.tag_names),
    ...tagIf(bookmark.unread === true, 'toread'),
    ...tagIf(bookmark.is_archived === true, 'archived'),
  ],
  createdAt: bookmark.date_added,
  updatedAt: bookmark.date_modified,
});

/** Reads a bookmark from the output of `buku --print --json`. */
export const fromBuku = ({ uri, title, description, tags }: JsonObject): ForeignBookmark => ({
  url: uri,
  title,
  comment: [description],
  tags: textOf(tags).split(','),
});

/** Reads an article from the files `metadata_….json` of Omnivore's export. */
export const fromOmnivore = (article: JsonObject): ForeignBookmark => ({
  url: article.url,
  title: article.title,
  comment: [article.description],
  tags: [
    ...listOf(article.labels).map(nameOf),
    ...tagIf(/^archived$/i.test(textOf(article.state)), 'archived'),
  ],
  createdAt: article.savedAt,
  updatedAt: article.updatedAt,
});

/** Reads an entry of wallabag's JSON. The text of the page, `content`, is not kept. */
export const fromWallabag = (entry: JsonObject): ForeignBookmark => ({
  url: entry.url || entry.given_url,
  title: entry.title,
  comment: objectsIn(entry.annotations).flatMap(({ quote, text }) => [quote, text]),
  tags: [
    ...listOf(entry.tags).map(nameOf),
    ...tagIf(isSet(entry.is_archived), 'archived'),
    ...tagIf(isSet(entry.is_starred), 'favorite'),
  ],
  createdAt: entry.created_at,
  updatedAt: entry.updated_at,
});

/** Reads Karakeep's JSON export. A saved text or uploaded file has no url, so that `collect` leaves it out. */
export function fromKarakeep(bookmarks: readonly JsonObject[], lists: unknown): ForeignBookmark[] {
  const listById = byId(objectsIn(lists));
  return bookmarks.map((bookmark) => {
    const content = isObject(bookmark.content) ? bookmark.content : {};
    return {
      url: content.url,
      title: bookmark.title || content.title || content.text || content.fileName,
      comment: [bookmark.note, bookmark.description || content.description],
      folders: listOf(bookmark.lists).map((id) => pathOf(id, listById)),
      tags: [
        ...listOf(bookmark.tags).map(nameOf),
        ...tagIf(bookmark.archived === true, 'archived'),
        ...tagIf(bookmark.favourited === true, 'favorite'),
      ],
      createdAt: bookmark.createdAt,
      updatedAt: bookmark.modifiedAt,
    };
  });
}

/** Linkwarden keeps links that are in no collection in this one. */
const UNORGANIZED = 'Unorganized';

/** Reads the collections of Linkwarden's `backup.json`. An uploaded file has no url, so that `collect` leaves it out. */
export function fromLinkwarden(collections: readonly JsonObject[], pinnedLinks: unknown): ForeignBookmark[] {
  const collectionById = byId(collections);
  const pinned = new Set(objectsIn(pinnedLinks).map(({ id }) => textOf(id)));
  return collections.flatMap((collection) =>
    objectsIn(collection.links).map((link) => ({
      url: link.url,
      title: link.name,
      comment: [link.description],
      folders: [collection.name === UNORGANIZED ? [] : pathOf(collection.id, collectionById)],
      tags: [...listOf(link.tags).map(nameOf), ...tagIf(pinned.has(textOf(link.id)), 'favorite')],
      createdAt: link.importDate || link.createdAt,
      updatedAt: link.updatedAt,
    })),
  );
}

/** Maps objects by their ids, which may be numbers or texts. */
const byId = (objects: readonly JsonObject[]): ReadonlyMap<string, JsonObject> =>
  new Map(objects.map((object) => [textOf(object.id), object]));

/** Returns the path of a list: the names of the lists around it, outermost first, and then its own name. */
function pathOf(id: unknown, listById: ReadonlyMap<string, JsonObject>): string[] {
  const names: string[] = [];
  // A malformed file may contain a list that contains itself.
  const visited = new Set<JsonObject>();
  let list = listById.get(textOf(id));
  while (list !== undefined && !visited.has(list)) {
    visited.add(list);
    names.unshift(textOf(list.name));
    list = listById.get(textOf(list.parentId));
  }
  return names;
}
