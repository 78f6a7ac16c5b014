import type { Bookmark } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { joinFolders, splitFolders } from './folders.ts';

/**
 * Writes the HTML bookmark file that browsers and other services import. Tags use the attribute of Pinboard and
 * linkding.
 */

/** Marks a file of this service. Its texts and tags are read unchanged, without the markers of other programs. */
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

/** Chromium reads the file line by line, so each link and each folder must be on one line. */
const escapeLine = (text: string): string => escapeText(text).replaceAll('\n', '&#10;');

/** Readers take larger numbers for milliseconds. This one is in the year 5138. */
const LAST_SECOND = 99_999_999_999;

/** Formats a time as seconds since 1970. Writes RFC 3339 if readers would misread the number. */
function formatSeconds(time: string): string {
  const seconds = Math.floor(Date.parse(time) / 1_000);
  return seconds === 0 || Math.abs(seconds) > LAST_SECOND ? time : String(seconds);
}

/** True for http and https. No other url may become a link, because a browser could run it. */
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
  /** Turn tags without a path into folders too. Chromium and Safari ignore TAGS. */
  tagFolders?: boolean;
}

/**
 * Returns the folders of a tag that must be written as folders: a path, a name with an escaped `/`, or a name with a
 * comma, which TAGS cannot hold.
 */
function foldersOf(name: string): string[] | undefined {
  const path = splitFolders(name);
  return path !== undefined && (path[0] !== name || name.includes(',')) ? path : undefined;
}

/**
 * Formats a bookmark file in chunks. Its folders come from tags with a path, for example `Work/Databases`. A tag that
 * begins another tag's path is a folder too. A bookmark appears in each of its folders, and its other tags are in TAGS.
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

/** Returns the folders of each tag that is written as a folder. */
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
