import type { Bookmark } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { joinFolders, splitFolders } from './folders.ts';

/**
 * Writes the HTML bookmark file that browsers and other services import. A bookmark's tags are in the attribute TAGS,
 * as in the files of Pinboard and linkding.
 */

/**
 * The name of the program in files that this service writes. From such a file, texts and tags are read unchanged. In
 * other files, some of them have a special meaning.
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

/** The largest number of seconds that is written, in the year 5138. Readers take larger numbers for milliseconds. */
const LAST_SECOND = 99_999_999_999;

/**
 * Formats a time as seconds since 1970, or as RFC 3339 if readers would misread the number. They take 0 for no time.
 */
function formatSeconds(time: string): string {
  const seconds = Math.floor(Date.parse(time) / 1_000);
  return seconds === 0 || Math.abs(seconds) > LAST_SECOND ? time : String(seconds);
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
  folders: Map<string, Folder>;
  links: string[];
}

const openFolder = (): Folder => ({ folders: new Map(), links: [] });

interface NetscapeOptions {
  /** Write every tag as a folder, because Chromium and Safari ignore TAGS. */
  tagFolders?: boolean;
}

/**
 * Returns the path of folders for a tag that must be written as a folder, and undefined for other tags. Such a tag is a
 * path, or has an escaped `/`, or has a comma, which TAGS cannot contain.
 */
function foldersOf(name: string): string[] | undefined {
  const path = splitFolders(name);
  return path !== undefined && (path[0] !== name || name.includes(',')) ? path : undefined;
}

/**
 * Returns the chunks of a bookmark file. Tags that are paths become folders, for example `Work/Databases`. If the tag
 * `Work` exists too, it becomes the folder above. A bookmark is written once in each of its folders. Its other tags are
 * in TAGS.
 */
export const formatNetscapeFile = (
  bookmarks: readonly Bookmark[],
  options: NetscapeOptions = {},
): string[] => [NETSCAPE_HEAD, ...formatFolder(arrange(bookmarks, options), 1), NETSCAPE_END];

function arrange(bookmarks: readonly Bookmark[], { tagFolders = false }: NetscapeOptions): Folder {
  const root = openFolder();
  const paths = findPaths(new Set(bookmarks.flatMap(({ tags }) => tags.map(({ name }) => name))));
  for (const bookmark of bookmarks) {
    const given = bookmark.tags.map(({ name }) => name);
    const link = formatLink(
      bookmark,
      given.filter((name) => !paths.has(name)).map((name) => name.replaceAll(',', ' ')),
    );
    const folders = given
      .map((name) => paths.get(name) ?? (tagFolders ? splitFolders(name) : undefined))
      .filter((path) => path !== undefined);
    for (const path of folders.length === 0 ? [[]] : folders) findFolder(root, path).links.push(link);
  }
  return root;
}

/** Returns the path of folders for each tag that is written as a folder. */
function findPaths(names: ReadonlySet<string>): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const name of names) {
    const path = foldersOf(name) ?? [];
    for (let length = path.length; length > 0; length -= 1) {
      const folder = path.slice(0, length);
      const tag = joinFolders(folder);
      if (names.has(tag)) paths.set(tag, folder);
    }
  }
  return paths;
}

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
