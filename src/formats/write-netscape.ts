import type { Bookmark } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { joinFolders, splitFolders } from './folders.ts';

/**
 * Writes the bookmark file that browsers and other services import, with tags as Pinboard and linkding write them.
 */

/** Says that texts and tags are as the service has them, without the marks of other programs. */
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

const escapeText = (text: string): string => text.replace(/[&<>"\r]/g, (character) => ENTITIES[character]!);

/** Chromium reads the file by lines, so that a link or a folder must be in one. */
const escapeLine = (text: string): string => escapeText(text).replaceAll('\n', '&#10;');

/** Seconds beyond it would be read as milliseconds: it is in the year 5138. */
const LAST_SECOND = 99_999_999_999;

/** Seconds since 1970; what no reader would take for these seconds, as the text of the time. */
function formatSeconds(time: string): string {
  const seconds = Math.floor(Date.parse(time) / 1_000);
  return seconds === 0 || Math.abs(seconds) > LAST_SECOND ? time : String(seconds);
}

/** Whether a browser may be given a url as a link: http and https alone, whatever a service sends. */
export const isWebUrl = (url: string): boolean => parseWebUrl(url) !== null;

/** A bookmark, with the tags that the attribute TAGS gives it. */
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
  /** Whether tags without a path become folders too. Chromium and Safari ignore TAGS. */
  tagFolders?: boolean;
}

/** The folders of a tag: those of a path, of a name with a backslash for `/`, and of one that TAGS cannot hold. */
function foldersOf(name: string): string[] | undefined {
  const path = splitFolders(name);
  return path !== undefined && (path[0] !== name || name.includes(',')) ? path : undefined;
}

/**
 * A bookmark file whose folders come from tags with a path, like `Work/Databases`. A tag that begins the path of another
 * one is a folder too. A bookmark is in each of its folders; its other tags are in TAGS. Holds all in memory: folders
 * come from the whole collection.
 */
export class NetscapeWriter {
  readonly #bookmarks: Bookmark[] = [];
  readonly #tagFolders: boolean;

  constructor({ tagFolders = false }: NetscapeOptions = {}) {
    this.#tagFolders = tagFolders;
  }

  add(bookmark: Bookmark): void {
    this.#bookmarks.push(bookmark);
  }

  /** The pieces of the file. */
  *pieces(): Generator<string, void, undefined> {
    yield NETSCAPE_HEAD;
    yield* formatFolder(this.#arrange(), 1);
    yield NETSCAPE_END;
  }

  #arrange(): Folder {
    const root = openFolder();
    const names = new Set(this.#bookmarks.flatMap(({ tags }) => tags.map(({ name }) => name)));
    const paths = new Map<string, string[]>();
    for (const name of names) {
      const path = foldersOf(name);
      for (let length = path?.length ?? 0; length > 0; length -= 1) {
        const folder = path!.slice(0, length);
        const tag = joinFolders(folder);
        if (names.has(tag)) paths.set(tag, folder);
      }
    }
    for (const bookmark of this.#bookmarks) {
      const given = bookmark.tags.map(({ name }) => name);
      const link = formatLink(
        bookmark,
        given.filter((name) => !paths.has(name)).map((name) => name.replaceAll(',', ' ')),
      );
      const folders = given.flatMap((name) => {
        const path = paths.get(name) ?? (this.#tagFolders ? splitFolders(name) : undefined);
        return path === undefined ? [] : [path];
      });
      for (const path of folders.length === 0 ? [[]] : folders) findFolder(root, path).links.push(link);
    }
    return root;
  }
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

/** The whole file of a few bookmarks. */
export function formatNetscapeFile(bookmarks: Iterable<Bookmark>, options: NetscapeOptions = {}): string[] {
  const writer = new NetscapeWriter(options);
  for (const bookmark of bookmarks) writer.add(bookmark);
  return [...writer.pieces()];
}
