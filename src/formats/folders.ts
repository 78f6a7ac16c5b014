/**
 * Converts folders to tags. The path of a folder becomes one tag, for example `Work/Databases`. A backslash escapes
 * `/` and `\` in a folder's name, so that the path can be read back.
 */

/** Returns the tag for a path of folder names, outermost first. */
export const joinFolders = (names: readonly string[]): string =>
  names.map((name) => name.replace(/[\\/]/g, '\\$&')).join('/');

/** Returns the folder names of a tag, outermost first. Returns undefined for a tag that is not a valid path. */
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

/** The maximum length of a tag name, in characters. */
const MAX_LENGTH = 255;

/** Returns the tag for a path. Drops the outermost folders of a path that is too long. */
export function folderTag(path: readonly string[]): string {
  const names = path.map((name) => name.trim()).filter(Boolean);
  while (names.length > 1 && joinFolders(names).length > MAX_LENGTH) names.shift();
  return joinFolders(names);
}
