import type { Tag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { joinFolders, splitFolders } from './folders.ts';

/** A tag with the tags below it. */
export interface TagNode {
  /** The last part of the tag's path. */
  name: string;
  /** The full path, for searching everything below this node. */
  path: string;
  /** The full name of the tag. Null for a part of a path that is not a tag itself. */
  tag: string | null;
  /** The number of bookmarks that have exactly this tag. */
  bookmark_count: number;
  tags: TagNode[];
}

/** Puts the tag `a/b` below `a`. A tag that is not a valid path, for example `and/`, becomes a root. */
export function growTree(tags: readonly Tag[]): TagNode[] {
  const roots: TagNode[] = [];
  const nodes = new Map<string, TagNode>();
  for (const { name: tag, bookmark_count } of tags) {
    const names = splitFolders(tag) ?? [tag];
    let siblings = roots;
    let node: TagNode | undefined;
    for (const [i, name] of names.entries()) {
      const key = foldText(JSON.stringify(names.slice(0, i + 1)));
      node = nodes.get(key);
      if (node === undefined) {
        const path = splitFolders(tag) === undefined ? tag : joinFolders(names.slice(0, i + 1));
        node = { name, path, tag: null, bookmark_count: 0, tags: [] };
        nodes.set(key, node);
        siblings.push(node);
      }
      siblings = node.tags;
    }
    Object.assign(node!, { name: names.at(-1), path: tag, tag, bookmark_count });
  }
  return roots;
}
