import type { ForeignBookmark } from './entry.ts';

/** Reads files that keep bookmarks in a tree of folders: Firefox's JSON backup and Chromium's `Bookmarks` file. */

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const childrenOf = (node: Record<string, unknown>): Record<string, unknown>[] =>
  Array.isArray(node.children) ? node.children.filter(isObject) : [];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The field names that a program uses. */
interface Shape {
  url: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  /** True for a folder that the program created itself. Its name says nothing about the bookmarks. */
  isOwn(node: Record<string, unknown>): boolean;
}

/** Returns the bookmarks below a node, in file order. */
function walk(top: Record<string, unknown>, shape: Shape, isTopOwn: boolean): ForeignBookmark[] {
  const found: ForeignBookmark[] = [];
  // An explicit stack, because a file may be nested deeper than the call stack allows.
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

/** True for a Firefox backup (`bookmarks-….json`). */
export const isFirefoxBackup = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && textOf(value.type).startsWith('text/x-moz-place');

/** Reads Firefox's bookmarks. Skips the tags folder of old backups, which repeats bookmarks from other folders. */
export const fromFirefox = (backup: Record<string, unknown>): ForeignBookmark[] =>
  childrenOf({ children: [backup] }).flatMap((top) =>
    walk({ ...top, children: childrenOf(top).filter(({ root }) => root !== 'tagsFolder') }, FIREFOX, true),
  );

/** True for the `Bookmarks` file of a Chromium, Chrome, Edge or Brave profile. */
export const isChromiumFile = (value: unknown): value is { roots: Record<string, unknown> } =>
  isObject(value) && isObject(value.roots);

export const fromChromium = ({ roots }: { roots: Record<string, unknown> }): ForeignBookmark[] =>
  Object.values(roots)
    .filter(isObject)
    .flatMap((root) => walk(root, CHROMIUM, true));
