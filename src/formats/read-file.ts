import type { ImportEntry } from '../domain/resources.ts';
import { findRefusals, type Refusal } from './check-entries.ts';
import { looksLikeCsv, parseCsv } from './csv.ts';
import {
  collect,
  type ForeignBookmark,
  type ForeignFile,
  isObject,
  type JsonObject,
  type ParsedFile,
  type ReadOptions,
  UnreadableFile,
} from './entry.ts';
import { parseNetscape } from './netscape.ts';
import { fromBuku, fromKarakeep, fromLinkding, fromPinboard, parsePinboardXml } from './services.ts';
import { fromChromium, fromFirefox, isFirefoxBackup } from './trees.ts';

/** Turns an exported file into the entries of an import. Recognizes from the file's content which program wrote it. */

/** The formats that an error message lists. */
const KNOWN =
  "a JSON export of this service, a browser's bookmarks (HTML, Firefox's JSON backup, Chrome's Bookmarks file), a list " +
  'from OneTab, CSV with a column url, or an export of Pinboard (JSON, XML, HTML), Raindrop (CSV, HTML), ' +
  'linkding (HTML, JSON), Karakeep (JSON), buku (HTML, JSON), Pocket (CSV, HTML) or Instapaper (CSV)';

/** A parsed file, with the entries that the service will refuse. */
export interface CheckedFile extends ParsedFile {
  refusals: Refusal[];
}

/** Reads a bookmark file and checks its entries as the service does. Throws `UnreadableFile` if the file is invalid. */
export function readBookmarkFile(bytes: Uint8Array, options: ReadOptions): CheckedFile {
  const content = parseFile(decode(bytes));
  const parsed: ParsedFile = Array.isArray(content)
    ? { format: 'bookmark-service', entries: content, leftOut: [], combined: 0, folders: [] }
    : collect(content, options);
  return { ...parsed, refusals: findRefusals(parsed.entries) };
}

/**
 * Parses a file of any known format. Returns the entries of this service's own export unchanged, so that the service
 * can report what is wrong with them.
 */
function parseFile(text: string): ForeignFile | ImportEntry[] {
  const start = text.slice(0, 4_096).trimStart();
  if (start === '') throw new UnreadableFile('the file is empty');
  const looksLikeJson = /^[[{]/.test(start);
  const looksLikePinboardXml = /^(<\?xml[^>]*>\s*)?<posts\b/i.test(start);
  if (looksLikeJson) return parseJson(text);
  if (looksLikePinboardXml) return { format: 'pinboard', bookmarks: parsePinboardXml(text) };
  if (start.startsWith('<')) return parseHtml(text);
  if (looksLikeCsv(start)) return parseCsv(text.trimStart());
  if (looksLikeOneTab(start)) return { format: 'onetab', bookmarks: parseOneTab(text) };
  throw new UnreadableFile(`the file format is unknown; expected ${KNOWN}`);
}

/** Decodes a file. Throws `UnreadableFile` if the bytes are not valid in the file's encoding. */
function decode(bytes: Uint8Array): string {
  const label = findEncoding(bytes);
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    throw new UnreadableFile(`the file is not text in ${label}; save it as UTF-8`);
  }
}

/** Matches the `<META>` element that names the encoding of HTML. */
const META_CHARSET = /<meta[^>]+charset=["']?(?<label>[\w-]{1,40})/i;

/**
 * Finds the encoding as browsers do: by the first bytes, then by the `<META>` element of HTML. The default is UTF-8.
 */
function findEncoding(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024)).trimStart();
  // Only HTML and XML begin with `<`. In other formats, a `<META>` element can only be part of a title. A file with the
  // byte order mark of UTF-8 does not begin with `<` either.
  if (!head.startsWith('<')) return 'utf-8';
  const label = META_CHARSET.exec(head)?.groups?.label?.toLowerCase() ?? 'utf-8';
  // A label that names UTF-16 must be wrong, because `META_CHARSET` does not match in a file that is UTF-16.
  return label.startsWith('utf-16') ? 'utf-8' : label;
}

/** Whether a text begins like an export of OneTab: one line `URL | TITLE` per tab, and a blank line between groups. */
const looksLikeOneTab = (start: string): boolean => /^https?:\/\/\S+( \| .*)?(\r?\n|$)/i.test(start);

const parseOneTab = (text: string): ForeignBookmark[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const [url = '', ...title] = line.split(' | ');
      return { url, title: title.join(' | ') };
    });

function parseHtml(text: string): ForeignFile {
  const file = parseNetscape(text);
  if (file.bookmarks.length > 0 || /<!DOCTYPE NETSCAPE-Bookmark-file/i.test(text)) return file;
  throw new UnreadableFile(`the file contains HTML without bookmarks; expected ${KNOWN}`);
}

function parseJson(text: string): ForeignFile | ImportEntry[] {
  const value = parseValue(text);
  // If the JSON is an array, `root` is an empty object.
  const root: JsonObject = isObject(value) ? value : {};
  if (isFirefoxBackup(root)) return { format: 'firefox', bookmarks: fromFirefox(root) };
  if (isObject(root.roots)) return { format: 'chrome', bookmarks: fromChromium(root.roots) };
  // Karakeep and this service write `bookmarks`, and linkding writes `results`.
  const entries = Array.isArray(value) ? value : (root.bookmarks ?? root.results);
  if (!Array.isArray(entries)) throw new UnreadableFile(`the file contains unknown JSON; expected ${KNOWN}`);
  const objects = entries.filter(isObject);
  const allMatch = (test: (entry: JsonObject) => boolean) =>
    entries.length > 0 && objects.length === entries.length && objects.every(test);
  if (allMatch(({ href }) => typeof href === 'string'))
    return { format: 'pinboard', bookmarks: objects.map(fromPinboard) };
  if (allMatch(({ uri }) => typeof uri === 'string'))
    return { format: 'buku', bookmarks: objects.map(fromBuku) };
  if (allMatch((entry) => 'tag_names' in entry))
    return { format: 'linkding', bookmarks: objects.map(fromLinkding) };
  if (allMatch((entry) => 'content' in entry && !('url' in entry)))
    return { format: 'karakeep', bookmarks: fromKarakeep(objects, root.lists) };
  const isOwn = entries.length === 0 || objects.some((entry) => 'url' in entry);
  if (isOwn && !('results' in root)) return entries;
  throw new UnreadableFile(`the file contains unknown JSON; expected ${KNOWN}`);
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableFile('the file is not complete JSON');
  }
}
