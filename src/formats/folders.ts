/**
 * Converts folders to tags, and back. The path of a folder becomes one tag, for example `Work/Databases`. In the name
 * of a folder, a backslash escapes `/` and `\`.
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

/** Returns the tag for a path of folder names. If the tag would be too long, leaves out the outermost folders. */
export function folderTag(path: readonly string[]): string {
  const names = path.map((name) => name.trim()).filter(Boolean);
  while (names.length > 1 && joinFolders(names).length > MAX_LENGTH) names.shift();
  return joinFolders(names);
}
