import { type ForeignBookmark, isObject, type JsonObject, textOf } from './entry.ts';

/** Reads files that keep bookmarks in a tree of folders: Firefox's JSON backup and Chromium's `Bookmarks` file. */

const childrenOf = (node: JsonObject): JsonObject[] =>
  Array.isArray(node.children) ? node.children.filter(isObject) : [];

/** How a program writes a node: the names of its fields, and which folders are built in. */
interface Shape {
  url: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  /** Whether the program created this folder itself. The name of such a folder says nothing about its bookmarks. */
  isBuiltIn(node: JsonObject): boolean;
}

/** A node that has not been read yet. `path` lists the names of the folders that contain the node, outermost first. */
interface UnreadNode {
  node: JsonObject;
  path: string[];
  isBuiltIn: boolean;
}

/** Returns the bookmarks below `top`, in file order. Their paths do not contain the name of `top` itself. */
function walk(top: JsonObject, shape: Shape): ForeignBookmark[] {
  const bookmarks: ForeignBookmark[] = [];
  // An explicit stack, because a file may be nested deeper than the call stack allows.
  const unread: UnreadNode[] = [{ node: top, path: [], isBuiltIn: true }];
  for (let next = unread.pop(); next !== undefined; next = unread.pop()) {
    const { node, path, isBuiltIn } = next;
    const url = textOf(node[shape.url]);
    if (url !== '') {
      bookmarks.push({
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
    const childPath = isBuiltIn || name === '' ? path : [...path, name];
    // The stack returns the child that was added last, so the first child must be added last.
    for (const child of childrenOf(node).reverse())
      unread.push({ node: child, path: childPath, isBuiltIn: shape.isBuiltIn(child) });
  }
  return bookmarks;
}

const FIREFOX: Shape = {
  url: 'uri',
  title: 'title',
  createdAt: 'dateAdded',
  updatedAt: 'lastModified',
  isBuiltIn: (node) => typeof node.root === 'string',
};

const CHROMIUM: Shape = {
  url: 'url',
  title: 'name',
  createdAt: 'date_added',
  updatedAt: 'date_modified',
  isBuiltIn: () => false,
};

/** Whether a JSON object is a backup of Firefox (`bookmarks-….json`). */
export const isFirefoxBackup = ({ type }: JsonObject): boolean => textOf(type).startsWith('text/x-moz-place');

/** Reads a backup of Firefox. Old backups have a folder of tags, which is skipped because it only repeats bookmarks. */
export const fromFirefox = (backup: JsonObject): ForeignBookmark[] =>
  walk({ ...backup, children: childrenOf(backup).filter(({ root }) => root !== 'tagsFolder') }, FIREFOX);

/** Reads the `roots` of the file `Bookmarks` in a profile of Chromium, Chrome, Edge or Brave. */
export const fromChromium = (roots: JsonObject): ForeignBookmark[] =>
  Object.values(roots)
    .filter(isObject)
    .flatMap((root) => walk(root, CHROMIUM));
