/**
 * Folders as tags. A folder's path becomes one tag, `Work/Databases`. In a folder's name a backslash stands before `/`
 * and before `\\`, so that the path can be read back.
 */

/** The tag of a folder, given the names of the folders from the outermost on. */
export const joinFolders = (names: readonly string[]): string =>
  names.map((name) => name.replace(/[\\/]/g, '\\$&')).join('/');

/** The names of the folders of a tag, from the outermost on; undefined for a tag that no folder becomes. */
export function splitFolders(tag: string): string[] | undefined {
  const names = [''];
  for (let at = 0; at < tag.length; at += 1) {
    if (tag[at] === '/') names.push('');
    else {
      if (tag[at] === '\\') at += 1;
      names[names.length - 1] += tag[at] ?? '';
    }
  }
  const isPath = names.every((name) => name !== '' && name === name.trim()) && joinFolders(names) === tag;
  return isPath ? names : undefined;
}

/** The longest name of a tag, in characters. */
const MAX_LENGTH = 255;

/** The tag of a folder as far as it fits: of a path that is too long the outermost folders are left out. */
export function folderTag(path: readonly string[]): string {
  const names = path.map((name) => name.trim()).filter(Boolean);
  while (names.length > 1 && joinFolders(names).length > MAX_LENGTH) names.shift();
  return joinFolders(names);
}
