import { Parser } from 'htmlparser2';
import { type ForeignBookmark, isObject, type JsonObject, stringsIn, textOf } from './entry.ts';
import { readDescription } from './netscape.ts';

/** Reads the JSON and XML of other services and programs. Some of them also export HTML, which `netscape.ts` reads. */

const tagIf = (condition: boolean, tag: string): string[] => (condition ? [tag] : []);

/**
 * Reads a post of Pinboard's `posts/all`. In such a post, `description` is the title and `extended` is the text. A
 * missing title or text is `false`.
 */
export const fromPinboard = (post: JsonObject): ForeignBookmark => ({
  url: textOf(post.href),
  title: post.description,
  comment: readDescription(textOf(post.extended)),
  tags: [...textOf(post.tags).split(/\s+/), ...tagIf(post.toread === 'yes', 'toread')],
  createdAt: post.time,
});

/** Parses the posts of Pinboard's XML. */
export function parsePinboardXml(xml: string): ForeignBookmark[] {
  const bookmarks: ForeignBookmark[] = [];
  const parser = new Parser(
    {
      // The XML keeps the tags in the attribute `tag`, and the JSON in the field `tags`.
      onopentag(name, { tag, ...post }) {
        if (name === 'post' && post.href !== undefined) bookmarks.push(fromPinboard({ ...post, tags: tag }));
      },
    },
    { xmlMode: true },
  );
  parser.end(xml);
  return bookmarks;
}

/** Reads a bookmark from linkding's `/api/bookmarks/`. */
export const fromLinkding = (bookmark: JsonObject): ForeignBookmark => ({
  url: textOf(bookmark.url),
  title: bookmark.title || bookmark.website_title,
  comment: [bookmark.description || bookmark.website_description, bookmark.notes],
  tags: [
    ...stringsIn(bookmark.tag_names),
    ...tagIf(bookmark.unread === true, 'toread'),
    ...tagIf(bookmark.is_archived === true, 'archived'),
  ],
  createdAt: bookmark.date_added,
  updatedAt: bookmark.date_modified,
});

/** Reads a bookmark from the output of `buku --print --json`. */
export const fromBuku = ({ uri, title, description, tags }: JsonObject): ForeignBookmark => ({
  url: textOf(uri),
  title,
  comment: [description],
  tags: textOf(tags).split(','),
});

/** Reads Karakeep's JSON export. A saved text or uploaded file gets an empty url, so that `collect` leaves it out. */
export function fromKarakeep(bookmarks: JsonObject[], lists: unknown): ForeignBookmark[] {
  const validLists = Array.isArray(lists) ? lists.filter(isObject) : [];
  const listById = new Map(validLists.map((list) => [textOf(list.id), list]));
  return bookmarks.map((bookmark) => {
    const content = isObject(bookmark.content) ? bookmark.content : {};
    return {
      url: textOf(content.url),
      title: bookmark.title || content.text || '(no link)',
      comment: [bookmark.note, bookmark.description],
      folders: stringsIn(bookmark.lists).map((id) => listPath(id, listById)),
      tags: [
        ...stringsIn(bookmark.tags),
        ...tagIf(bookmark.archived === true, 'archived'),
        ...tagIf(bookmark.favourited === true, 'favorite'),
      ],
      createdAt: bookmark.createdAt,
    };
  });
}

/** Returns the path of a Karakeep list: the names of the lists around it, outermost first, and then its own name. */
function listPath(id: string, listById: ReadonlyMap<string, JsonObject>): string[] {
  const names: string[] = [];
  // A malformed file may contain a list that contains itself.
  const visited = new Set<JsonObject>();
  let list = listById.get(id);
  while (list !== undefined && !visited.has(list)) {
    visited.add(list);
    names.unshift(textOf(list.name));
    list = typeof list.parentId === 'string' ? listById.get(list.parentId) : undefined;
  }
  return names;
}
