import type { ImportEntry } from '../domain/resources.ts';
import { looksLikeCsv, parseCsv } from './csv.ts';
import { collect, type ParsedFile, UnreadableFile } from './entry.ts';
import { fromLinkding, type LinkdingBookmark } from './linkding.ts';
import { type NetscapeOptions, parseNetscape } from './netscape.ts';
import { fromPost, type PinboardPost, parsePinboardXml } from './pinboard.ts';

/** From an exported file to the entries of an import. The content of the file shows which program wrote it. */

const KNOWN =
  "JSON of this service, a browser's bookmarks as HTML, or an export of Pinboard (JSON, XML, HTML), " +
  'Raindrop (CSV, HTML) or linkding (HTML, JSON)';

/** Reads a file of bookmarks; throws `UnreadableFile`. */
export function readBookmarkFile(bytes: Uint8Array, options: NetscapeOptions): ParsedFile {
  const text = decode(bytes);
  const start = text.slice(0, 4_096).trimStart();
  if (start === '') throw new UnreadableFile('the file is empty');
  if (/^[[{]/.test(start)) return readJson(text);
  if (/^(<\?xml[^>]*>\s*)?<posts\b/i.test(start)) return collect('pinboard', parsePinboardXml(text));
  if (start.startsWith('<')) return readHtml(text, options);
  if (looksLikeCsv(start)) {
    const { format, bookmarks } = parseCsv(text.trimStart(), options);
    return collect(format, bookmarks);
  }
  throw new UnreadableFile(`the file is none that can be imported; expected ${KNOWN}`);
}

/** Decodes the text by its first bytes or its `<META>`; UTF-8 where neither names an encoding. */
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

function readHtml(text: string, options: NetscapeOptions): ParsedFile {
  const bookmarks = parseNetscape(text, options);
  if (bookmarks.length > 0 || /<!DOCTYPE NETSCAPE-Bookmark-file/i.test(text)) {
    return collect('netscape', bookmarks);
  }
  throw new UnreadableFile(`the file holds HTML without bookmarks; expected ${KNOWN}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const every = <T>(entries: unknown[], field: string): entries is T[] =>
  entries.every((entry) => isObject(entry) && typeof entry[field] === 'string');

function readJson(text: string): ParsedFile {
  const value = parse(text);
  const entries = Array.isArray(value)
    ? value
    : isObject(value)
      ? (value.bookmarks ?? value.results)
      : undefined;
  if (!Array.isArray(entries)) throw new UnreadableFile(`the file holds other JSON; expected ${KNOWN}`);
  const isForeign = entries.length > 0;
  if (isForeign && every<PinboardPost>(entries, 'href')) return collect('pinboard', entries.map(fromPost));
  if (isForeign && entries.every((entry) => isObject(entry) && 'tag_names' in entry)) {
    return collect('linkding', (entries as LinkdingBookmark[]).map(fromLinkding));
  }
  if (!isObject(value) || !('results' in value)) {
    // Unchanged: the service itself says what is wrong with an entry.
    return { format: 'bookmark-service', entries: entries as ImportEntry[], leftOut: [], combined: 0 };
  }
  throw new UnreadableFile(`the file holds other JSON; expected ${KNOWN}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableFile('the file is no whole JSON: it begins as JSON does, but does not end so');
  }
}
