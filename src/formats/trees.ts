import type { ForeignBookmark } from './entry.ts';

/** Files that keep bookmarks in a tree of folders: Firefox's JSON backup, and Chromium's file `Bookmarks`. */

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const childrenOf = (node: Record<string, unknown>): Record<string, unknown>[] =>
  Array.isArray(node.children) ? node.children.filter(isObject) : [];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** How a program names what it writes. */
interface Shape {
  url: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  /** Whether a folder was made by the program itself, so that its name says nothing. */
  isOwn(node: Record<string, unknown>): boolean;
}

/** The bookmarks below a node, in the order of the file. */
function walk(top: Record<string, unknown>, shape: Shape, isTopOwn: boolean): ForeignBookmark[] {
  const found: ForeignBookmark[] = [];
  // A list of its own instead of recursion: a file may nest deeper than the stack.
  const open = [{ node: top, path: [] as string[], isOwn: isTopOwn }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, path, isOwn } = next;
    const url = textOf(node[shape.url]);
    if (url !== '') {
      found.push({
        url,
        title: node[shape.title],
        tags: textOf(node.tags).split(','),
        folders: [path],
        createdAt: node[shape.createdAt],
        updatedAt: node[shape.updatedAt],
      });
      continue;
    }
    const name = textOf(node[shape.title]).trim();
    const below = isOwn || name === '' ? path : [...path, name];
    for (const child of childrenOf(node).reverse())
      open.push({ node: child, path: below, isOwn: shape.isOwn(child) });
  }
  return found;
}

const FIREFOX: Shape = {
  url: 'uri',
  title: 'title',
  createdAt: 'dateAdded',
  updatedAt: 'lastModified',
  isOwn: (node) => typeof node.root === 'string',
};

const CHROMIUM: Shape = {
  url: 'url',
  title: 'name',
  createdAt: 'date_added',
  updatedAt: 'date_modified',
  isOwn: () => false,
};

/** Whether a value is a backup of Firefox (`bookmarks-….json`). */
export const isFirefoxBackup = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && textOf(value.type).startsWith('text/x-moz-place');

/** Firefox's bookmarks. Its old backups have a folder with an entry for each tag, which repeats what is elsewhere. */
export const fromFirefox = (backup: Record<string, unknown>): ForeignBookmark[] =>
  childrenOf({ children: [backup] }).flatMap((top) =>
    walk({ ...top, children: childrenOf(top).filter(({ root }) => root !== 'tagsFolder') }, FIREFOX, true),
  );

/** Whether a value is the file `Bookmarks` of a profile of Chromium, Chrome, Edge or Brave. */
export const isChromiumFile = (value: unknown): value is { roots: Record<string, unknown> } =>
  isObject(value) && isObject(value.roots);

export const fromChromium = ({ roots }: { roots: Record<string, unknown> }): ForeignBookmark[] =>
  Object.values(roots)
    .filter(isObject)
    .flatMap((root) => walk(root, CHROMIUM, true));
