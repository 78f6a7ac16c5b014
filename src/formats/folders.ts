/**
 * Converts folders to tags, and back. The path of a folder becomes one tag, for example `Work/Databases`. If the name
 * of a folder contains `/` or `\`, the tag has a backslash before that character.
 */

/** Returns the tag for a path of folder names, outermost first. */
export const joinFolders = (names: readonly string[]): string =>
  names.map((name) => name.replace(/[\\/]/g, '\\$&')).join('/');

/** Returns the folder names of a tag, outermost first. Returns undefined for a tag that is not a valid path. */
export function splitFolders(tag: string): string[] | undefined {
  const names = [''];
  for (let i = 0; i < tag.length; i += 1) {
    if (tag[i] === '/') names.push('');
    else {
      // A backslash escapes the next character, which therefore belongs to the name.
      if (tag[i] === '\\') i += 1;
      names[names.length - 1] += tag[i] ?? '';
    }
  }
  const isPath = names.every((name) => name !== '' && name === name.trim()) && joinFolders(names) === tag;
  return isPath ? names : undefined;
}

/** Formats a tag for people. If a folder's name contains a slash, other signs separate the names of the folders. */
export function showTag(tag: string): string {
  const names = tag.includes('\\') ? splitFolders(tag) : undefined;
  return names === undefined ? tag : names.join(' › ');
}
