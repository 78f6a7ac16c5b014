import type { Bookmark } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { joinFolders, splitFolders } from './folders.ts';

/**
 * Writes the HTML bookmark file that browsers and other services import. A bookmark's tags are in the attribute TAGS,
 * as in the files of Pinboard and linkding.
 */

/**
 * The name of the program in files that this service writes. Texts and tags in these files are read unchanged. In files
 * of other programs, some texts and tags have a special meaning.
 */
export const GENERATOR = 'bookmark-service';

const NETSCAPE_HEAD = `<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<META NAME="generator" CONTENT="${GENERATOR}">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
<DL><p>
`;

const NETSCAPE_END = '</DL><p>\n';

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
};

const escapeText = (text: string): string =>
  text.replace(/[&<>"\r]/g, (character) => ENTITIES[character] ?? character);

/** Escapes a text, including its line breaks. Chromium needs each link and each folder on one line of the file. */
const escapeLine = (text: string): string => escapeText(text).replaceAll('\n', '&#10;');

/** The largest number of seconds that is written: a time in 5138. Readers treat larger numbers as milliseconds. */
const LAST_SECOND = 99_999_999_999;

/** The smallest number of seconds that is written: a time in 1973. Readers treat 0 as no time, and 19800101 as a day. */
const FIRST_SECOND = 100_000_000;

/** Formats a time as seconds since 1970, or as RFC 3339 if readers would misread the number. */
function formatSeconds(time: string): string {
  const seconds = Math.floor(Date.parse(time) / 1_000);
  const isMisread = seconds < FIRST_SECOND || seconds > LAST_SECOND;
  return isMisread ? new Date(seconds * 1_000).toISOString() : String(seconds);
}

/** Whether a url is http or https. Other urls must not become links, because a browser could run them as code. */
export const isWebUrl = (url: string): boolean => parseWebUrl(url) !== null;

/** Formats a bookmark as a link. `names` become its TAGS attribute. */
function formatLink({ url, title, comment, created_at, updated_at }: Bookmark, names: string[]): string {
  const link =
    `<DT><A HREF="${escapeLine(url)}" ADD_DATE="${formatSeconds(created_at)}" ` +
    `LAST_MODIFIED="${formatSeconds(updated_at)}" TAGS="${escapeLine(names.join(','))}">${escapeLine(title)}</A>\n`;
  return comment === '' ? link : `${link}<DD>${escapeText(comment)}\n`;
}

interface Folder {
  /** The folders in this folder, by name. */
  folders: Map<string, Folder>;
  /** The HTML of each link in this folder. */
  links: string[];
}

const openFolder = (): Folder => ({ folders: new Map(), links: [] });

interface NetscapeOptions {
  /** Whether every tag is written as a folder. Chromium and Safari ignore TAGS, but import folders. */
  tagFolders?: boolean;
}

/**
 * Returns the path of folders for a tag that must be written as a folder, and undefined for other tags. A valid path
 * must be written as a folder if it has several parts, a backslash, or a comma, which would separate tags in TAGS.
 */
function findRequiredPath(name: string): string[] | undefined {
  const path = splitFolders(name);
  return path !== undefined && (path[0] !== name || name.includes(',')) ? path : undefined;
}

/**
 * Returns the chunks of a bookmark file. Tags that are paths, such as `Work/Databases`, become folders. If the tag
 * `Work` exists too, it becomes the folder that contains `Databases`. A bookmark is written once in each of its
 * folders. TAGS contains the tags that do not become folders.
 */
export const formatNetscapeFile = (
  bookmarks: readonly Bookmark[],
  options: NetscapeOptions = {},
): string[] => [NETSCAPE_HEAD, ...formatFolder(buildFolders(bookmarks, options), 1), NETSCAPE_END];

/** Puts the link of each bookmark into its folders. Returns the folder that contains everything. */
function buildFolders(bookmarks: readonly Bookmark[], { tagFolders = false }: NetscapeOptions): Folder {
  const root = openFolder();
  const pathOfTag = findPaths(new Set(bookmarks.flatMap(({ tags }) => tags.map(({ name }) => name))));
  for (const bookmark of bookmarks) {
    const tagNames = bookmark.tags.map(({ name }) => name);
    const tagsOfLink = tagNames
      .filter((name) => !pathOfTag.has(name))
      .map((name) => name.replaceAll(',', ' '));
    const link = formatLink(bookmark, tagsOfLink);
    const paths = tagNames
      .map((name) => pathOfTag.get(name) ?? (tagFolders ? splitFolders(name) : undefined))
      .filter((path) => path !== undefined);
    if (paths.length === 0) root.links.push(link);
    for (const path of paths) findFolder(root, path).links.push(link);
  }
  return root;
}

/** Returns the folder's path for each tag that becomes a folder even without `tagFolders`. The keys are the tags. */
function findPaths(names: ReadonlySet<string>): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const name of names) {
    const path = findRequiredPath(name) ?? [];
    for (let length = path.length; length > 0; length -= 1) {
      // The tag itself first, then the tags above it.
      const pathAbove = path.slice(0, length);
      const tag = joinFolders(pathAbove);
      if (names.has(tag)) paths.set(tag, pathAbove);
    }
  }
  return paths;
}

/** Returns the folder at a path, and creates it if needed. */
function findFolder(root: Folder, path: readonly string[]): Folder {
  let folder = root;
  for (const name of path) {
    const next = folder.folders.get(name) ?? openFolder();
    folder.folders.set(name, next);
    folder = next;
  }
  return folder;
}

function* formatFolder({ folders, links }: Folder, depth: number): Generator<string, void, undefined> {
  const indent = '    '.repeat(depth);
  for (const [name, folder] of folders) {
    yield `${indent}<DT><H3>${escapeLine(name)}</H3>\n${indent}<DL><p>\n`;
    yield* formatFolder(folder, depth + 1);
    yield `${indent}</DL><p>\n`;
  }
  for (const link of links) yield indent + link;
}
