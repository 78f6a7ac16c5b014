import { type ForeignBookmark, isObject, type JsonObject, objectsIn, textOf } from './entry.ts';

/** Reads files that keep bookmarks in a tree of folders: Firefox's JSON backup and Chromium's `Bookmarks` file. */

/** How a program writes a node: the names of its fields, and which folders are built in. */
interface Shape {
  /** Returns the url of a node. Undefined for a folder. */
  urlOf(node: JsonObject): unknown;
  title: string;
  createdAt: string;
  updatedAt: string;
  /** Returns the texts that describe the bookmark of a node. */
  commentOf(node: JsonObject): unknown[];
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
    const url = shape.urlOf(node);
    if (url !== undefined) {
      bookmarks.push({
        url,
        title: node[shape.title],
        comment: shape.commentOf(node),
        tags: textOf(node.tags).split(','),
        folders: [path],
        createdAt: node[shape.createdAt],
        updatedAt: node[shape.updatedAt],
      });
    }
    const name = textOf(node[shape.title]);
    const childPath = isBuiltIn || name === '' ? path : [...path, name];
    // The stack returns the child that was added last, so the first child must be added last.
    for (const child of objectsIn(node.children).reverse())
      unread.push({ node: child, path: childPath, isBuiltIn: shape.isBuiltIn(child) });
  }
  return bookmarks;
}

/** Returns the value of an annotation that Firefox has attached to a node. */
const annotationOf = (node: JsonObject, name: string): unknown =>
  objectsIn(node.annos).find((anno) => anno.name === name)?.value;

const FIREFOX: Shape = {
  // A live bookmark is a folder with the addresses of a page and of a feed.
  urlOf: (node) =>
    'uri' in node
      ? node.uri
      : (annotationOf(node, 'livemark/siteURI') ?? annotationOf(node, 'livemark/feedURI')),
  title: 'title',
  createdAt: 'dateAdded',
  updatedAt: 'lastModified',
  commentOf: (node) => [annotationOf(node, 'bookmarkProperties/description')],
  isBuiltIn: (node) => typeof node.root === 'string',
};

const CHROMIUM: Shape = {
  urlOf: ({ url }) => url,
  title: 'name',
  createdAt: 'date_added',
  updatedAt: 'date_modified',
  // Vivaldi writes descriptions.
  commentOf: (node) => [node.description, isObject(node.meta_info) && node.meta_info.Description],
  isBuiltIn: () => false,
};

/** The tree that browsers' `bookmarks.getTree` returns. Extensions write it into their backups. */
const EXTENSION: Shape = {
  urlOf: ({ url }) => url,
  title: 'title',
  createdAt: 'dateAdded',
  updatedAt: 'dateModified',
  commentOf: () => [],
  isBuiltIn: () => false,
};

/** Whether a JSON object is a backup of Firefox (`bookmarks-….json`). */
export const isFirefoxBackup = ({ type }: JsonObject): boolean => textOf(type).startsWith('text/x-moz-place');

/**
 * Reads a backup of Firefox. Old backups have a folder of tags. Its folders are tags, and repeat the bookmarks that have
 * them.
 */
export function fromFirefox(backup: JsonObject): ForeignBookmark[] {
  const children = objectsIn(backup.children);
  const tagsFolders = children.filter(({ root }) => root === 'tagsFolder');
  const rest = children.filter(({ root }) => root !== 'tagsFolder');
  const tagged = tagsFolders
    .flatMap((folder) => objectsIn(folder.children))
    .flatMap((tag) => walk(tag, FIREFOX).map((bookmark) => ({ ...bookmark, tags: [tag.title] })));
  return [...walk({ ...backup, children: rest }, FIREFOX), ...tagged];
}

/**
 * Reads the `roots` of the file `Bookmarks` in a profile of Chromium, Chrome, Edge, Brave, Vivaldi or Opera. Opera has
 * roots inside `custom_root`. Bookmarks in the trash of Vivaldi and Opera are left out.
 */
export const fromChromium = (roots: JsonObject): ForeignBookmark[] =>
  Object.entries(roots).flatMap(([key, root]): ForeignBookmark[] => {
    if (!isObject(root)) return [];
    const isFolder = Array.isArray(root.children) || 'url' in root;
    const bookmarks = isFolder ? walk(root, CHROMIUM) : fromChromium(root);
    return /trash/i.test(key) ? bookmarks.map((each) => ({ ...each, omission: 'trash' })) : bookmarks;
  });

/** Whether a JSON value is the tree that `bookmarks.getTree` returns, or a folder in it. */
export const isExtensionTree = (value: unknown): boolean =>
  (Array.isArray(value) ? value : [value]).some((node) => isObject(node) && Array.isArray(node.children));

/** Reads a tree of `bookmarks.getTree`. The root and the folders in it are the browser's own. */
export function fromExtensionTree(value: unknown): ForeignBookmark[] {
  const nodes = Array.isArray(value) ? value : [value];
  return walk({ children: nodes }, { ...EXTENSION, isBuiltIn: isBrowserFolder });
}

/** Whether a folder has an id that browsers use for the folders that they create. */
const isBrowserFolder = ({ id, parentId }: JsonObject): boolean =>
  textOf(parentId) === '0' || textOf(id) === '0' || /^[a-z]+_{3,}$/.test(textOf(id));
