import type { ImportEntry } from '../domain/resources.ts';
import { findRefusals, type Refusal } from './check-entries.ts';
import { looksLikeCsv, parseCsv } from './csv.ts';
import { collect, type ForeignBookmark, type ParsedFile, type ReadOptions, UnreadableFile } from './entry.ts';
import { fromKarakeep, type KarakeepBookmark } from './karakeep.ts';
import { fromLinkding, type LinkdingBookmark } from './linkding.ts';
import { parseNetscape } from './netscape.ts';
import { fromPost, type PinboardPost, parsePinboardXml } from './pinboard.ts';
import { fromChromium, fromFirefox, isChromiumFile, isFirefoxBackup } from './trees.ts';

/** Turns an exported file into the entries of an import. Detects the program that wrote it from the content. */

const KNOWN =
  "a JSON export of this service, a browser's bookmarks (HTML, Firefox's JSON backup, Chrome's Bookmarks file), a list " +
  'from OneTab, CSV with a column url, or an export of Pinboard (JSON, XML, HTML), Raindrop (CSV, HTML), ' +
  'linkding (HTML, JSON), Karakeep (JSON), buku (HTML, JSON), Pocket (CSV, HTML) or Instapaper (CSV)';

/** A parsed file, with the entries that the service will refuse. */
export interface CheckedFile extends ParsedFile {
  refusals: Refusal[];
}

/** Reads a bookmark file and checks its entries as the service does. Throws `UnreadableFile`. */
export function readBookmarkFile(bytes: Uint8Array, options: ReadOptions): CheckedFile {
  const parsed = parseFile(bytes, options);
  return { ...parsed, refusals: findRefusals(parsed.entries) };
}

function parseFile(bytes: Uint8Array, options: ReadOptions): ParsedFile {
  const text = decode(bytes);
  const start = text.slice(0, 4_096).trimStart();
  if (start === '') throw new UnreadableFile('the file is empty');
  if (/^[[{]/.test(start)) return readJson(text, options);
  if (/^(<\?xml[^>]*>\s*)?<posts\b/i.test(start)) return collect('pinboard', parsePinboardXml(text), options);
  if (start.startsWith('<')) return readHtml(text, options);
  if (looksLikeCsv(start)) {
    const { format, bookmarks } = parseCsv(text.trimStart());
    return collect(format, bookmarks, options);
  }
  if (looksLikeOneTab(start)) return collect('onetab', parseOneTab(text), options);
  throw new UnreadableFile(`the file format is unknown; expected ${KNOWN}`);
}

/** Decodes the text. The encoding comes from the first bytes or the `<META>` element; the default is UTF-8. */
function decode(bytes: Uint8Array): string {
  const label = findEncoding(bytes);
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    throw new UnreadableFile(`the file is not text in ${label}; save it as UTF-8`);
  }
}

function findEncoding(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  const head = Array.from(bytes.subarray(0, 1_024), (byte) => String.fromCharCode(byte)).join('');
  return /<meta[^>]+charset=["']?([\w-]{1,40})/i.exec(head)?.[1]?.toLowerCase() ?? 'utf-8';
}

/** OneTab exports one tab per line, `URL | TITLE`, with blank lines between groups. */
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

/** A record of buku's `--print --json`. */
interface BukuRecord {
  uri: string;
  title?: unknown;
  description?: unknown;
  tags?: unknown;
}

const fromBuku = ({ uri, title, description, tags }: BukuRecord): ForeignBookmark => ({
  url: uri,
  title,
  comment: [description],
  tags: typeof tags === 'string' ? tags.split(',') : [],
});

function readHtml(text: string, options: ReadOptions): ParsedFile {
  const { format, bookmarks } = parseNetscape(text);
  if (bookmarks.length > 0 || /<!DOCTYPE NETSCAPE-Bookmark-file/i.test(text)) {
    return collect(format, bookmarks, options);
  }
  throw new UnreadableFile(`the file contains HTML without bookmarks; expected ${KNOWN}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const every = <T>(entries: unknown[], field: string): entries is T[] =>
  entries.every((entry) => isObject(entry) && typeof entry[field] === 'string');

function readJson(text: string, options: ReadOptions): ParsedFile {
  const value = parse(text);
  if (isFirefoxBackup(value)) return collect('firefox', fromFirefox(value), options);
  if (isChromiumFile(value)) return collect('chrome', fromChromium(value), options);
  const entries = Array.isArray(value)
    ? value
    : isObject(value)
      ? (value.bookmarks ?? value.results)
      : undefined;
  if (!Array.isArray(entries)) throw new UnreadableFile(`the file contains unknown JSON; expected ${KNOWN}`);
  const isForeign = entries.length > 0;
  if (isForeign && every<PinboardPost>(entries, 'href'))
    return collect('pinboard', entries.map(fromPost), options);
  if (isForeign && every<BukuRecord>(entries, 'uri')) return collect('buku', entries.map(fromBuku), options);
  if (isForeign && entries.every((entry) => isObject(entry) && 'tag_names' in entry)) {
    return collect('linkding', (entries as LinkdingBookmark[]).map(fromLinkding), options);
  }
  if (isForeign && entries.every((entry) => isObject(entry) && 'content' in entry && !('url' in entry))) {
    const lists = isObject(value) ? value.lists : undefined;
    return collect('karakeep', fromKarakeep(entries as KarakeepBookmark[], lists), options);
  }
  const isOwn = !isForeign || entries.some((entry) => isObject(entry) && 'url' in entry);
  if (isOwn && (!isObject(value) || !('results' in value))) {
    // Passed on unchanged, so that the service reports what is wrong with an entry.
    return {
      format: 'bookmark-service',
      entries: entries as ImportEntry[],
      leftOut: [],
      combined: 0,
      folders: [],
    };
  }
  throw new UnreadableFile(`the file contains unknown JSON; expected ${KNOWN}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableFile('the file is not complete JSON');
  }
}
