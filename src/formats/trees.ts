import { type ForeignBookmark, isObject, type JsonObject, textOf } from './entry.ts';

/** Reads files that keep bookmarks in a tree of folders: Firefox's JSON backup and Chromium's `Bookmarks` file. */

const childrenOf = (node: JsonObject): JsonObject[] =>
  Array.isArray(node.children) ? node.children.filter(isObject) : [];

/** The field names that a program uses. */
interface Shape {
  url: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  /** True for a folder that the program created itself. Its name says nothing about the bookmarks. */
  isOwn(node: JsonObject): boolean;
}

/** A node that is still to be read. `path` has the names of the folders around it. */
interface Open {
  node: JsonObject;
  path: string[];
  isOwn: boolean;
}

/** Returns the bookmarks below a node that the program created itself, in file order. */
function walk(top: JsonObject, shape: Shape): ForeignBookmark[] {
  const found: ForeignBookmark[] = [];
  // An explicit stack, because a file may be nested deeper than the call stack allows.
  const open: Open[] = [{ node: top, path: [], isOwn: true }];
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
    const name = textOf(node[shape.title]);
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
export const isFirefoxBackup = ({ type }: JsonObject): boolean => textOf(type).startsWith('text/x-moz-place');

/** Reads Firefox's bookmarks. Skips the tags folder of old backups, which repeats bookmarks from other folders. */
export const fromFirefox = (backup: JsonObject): ForeignBookmark[] =>
  walk({ ...backup, children: childrenOf(backup).filter(({ root }) => root !== 'tagsFolder') }, FIREFOX);

/** Reads the `roots` of the file `Bookmarks` in a profile of Chromium, Chrome, Edge or Brave. */
export const fromChromium = (roots: JsonObject): ForeignBookmark[] =>
  Object.values(roots)
    .filter(isObject)
    .flatMap((root) => walk(root, CHROMIUM));
