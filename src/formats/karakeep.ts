import type { ForeignBookmark } from './entry.ts';

/** Reads Karakeep's JSON export. Texts and uploaded files are left out because they have no url. */

export interface KarakeepBookmark {
  createdAt?: unknown;
  title?: unknown;
  tags?: unknown;
  /** The ids of its lists. */
  lists?: unknown;
  content: { type?: unknown; url?: unknown; text?: unknown } | null;
  description?: unknown;
  note?: unknown;
  archived?: unknown;
  favourited?: unknown;
}

interface KarakeepList {
  id: string;
  name: string;
  type?: unknown;
  parentId?: unknown;
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

const isList = (value: unknown): value is KarakeepList =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as KarakeepList).id === 'string' &&
  typeof (value as KarakeepList).name === 'string';

/** Returns the names of a list and its ancestors, outermost first. */
function pathOf(id: string, byId: ReadonlyMap<string, KarakeepList>): string[] {
  const names: string[] = [];
  const seen = new Set<string>();
  for (let list = byId.get(id); list !== undefined && !seen.has(list.id); ) {
    seen.add(list.id);
    names.unshift(list.name);
    list = typeof list.parentId === 'string' ? byId.get(list.parentId) : undefined;
  }
  return names;
}

export function fromKarakeep(bookmarks: KarakeepBookmark[], lists: unknown): ForeignBookmark[] {
  const byId = new Map((Array.isArray(lists) ? lists.filter(isList) : []).map((list) => [list.id, list]));
  return bookmarks.map(({ content, title, tags, lists: ids, description, note, ...rest }) => ({
    url: typeof content?.url === 'string' ? content.url : '',
    title: title || content?.text || '(no link)',
    comment: [note, description],
    folders: strings(ids).map((id) => pathOf(id, byId)),
    tags: [
      ...strings(tags),
      ...(rest.archived === true ? ['archived'] : []),
      ...(rest.favourited === true ? ['favorite'] : []),
    ],
    createdAt: rest.createdAt,
  }));
}
