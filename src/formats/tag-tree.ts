import type { Tag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { joinFolders, splitFolders } from './folders.ts';

/** A tag with the tags below it. */
export interface TagNode {
  /** The last part of the tag's path. */
  name: string;
  /**
   * The full path of this node. A search for `under:` with this path finds the bookmarks of this node and of all nodes
   * below it.
   */
  path: string;
  /** The full name of the tag. Null if there are only tags below this path, and no tag with the path itself. */
  tag: string | null;
  /** The number of bookmarks that have this tag itself, not only a tag below it. */
  bookmark_count: number;
  tags: TagNode[];
}

/** Adds up the counts of a node and of all nodes below it. A bookmark with several of these tags counts several times. */
export const countBelow = ({ bookmark_count, tags }: TagNode): number =>
  tags.reduce((sum, node) => sum + countBelow(node), bookmark_count);

/** Builds the tree of tags: `a/b` is below `a`. A tag that is not a valid path, such as `and/`, is at the top level. */
export function growTree(tags: readonly Tag[]): TagNode[] {
  const roots: TagNode[] = [];
  // The node for each path. The key is the path in normalized case.
  const nodes = new Map<string, TagNode>();
  // Returns the node for a path. Creates the node, and the nodes above it, if they do not exist.
  const ensureNode = (names: readonly string[]): TagNode => {
    const key = foldText(JSON.stringify(names));
    const existing = nodes.get(key);
    if (existing !== undefined) return existing;
    const [name = ''] = names.slice(-1);
    const node: TagNode = { name, path: joinFolders(names), tag: null, bookmark_count: 0, tags: [] };
    nodes.set(key, node);
    const siblings = names.length > 1 ? ensureNode(names.slice(0, -1)).tags : roots;
    siblings.push(node);
    return node;
  };
  for (const { name: tag, bookmark_count } of tags) {
    const names = splitFolders(tag) ?? [tag];
    Object.assign(ensureNode(names), { name: names.at(-1), path: tag, tag, bookmark_count });
  }
  return roots;
}
