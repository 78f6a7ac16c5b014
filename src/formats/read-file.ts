import type { ImportEntry } from '../domain/resources.ts';
import { findRefusals, type Refusal } from './check-entries.ts';
import { collect, reportReplacedBytes } from './collect.ts';
import { looksLikeCsv, parseCsv } from './csv.ts';
import { decodeFile } from './decode.ts';
import {
  type ForeignBookmark,
  type ForeignFile,
  type ParsedFile,
  type ReadOptions,
  UnreadableFile,
} from './entry.ts';
import { parseJson } from './json.ts';
import { parseNetscape } from './netscape.ts';
import { parsePinboardXml } from './services.ts';

/** Turns an exported file into the entries of an import. Recognizes from the file's content which program wrote it. */

/** The formats that an error message lists. */
const KNOWN =
  "a JSON export of this service, a browser's bookmarks (HTML, Firefox's JSON backup, Chrome's Bookmarks file), a list " +
  'from OneTab, CSV or a JSON list with a field url, or an export of Pinboard (JSON, XML, HTML), Raindrop (CSV, HTML), ' +
  'linkding (HTML, JSON), Linkwarden (JSON), Karakeep (JSON), Omnivore (JSON), wallabag (JSON), buku (HTML, JSON), ' +
  'Pocket (CSV, HTML) or Instapaper (CSV, HTML)';

/** A parsed file, with the entries that the service will refuse. */
export interface CheckedFile extends ParsedFile {
  refusals: Refusal[];
  /** The encoding in which the file was read, if nothing in the file names it and it is not UTF-8. */
  guessedEncoding?: string;
}

/** Reads a bookmark file and checks its entries as the service does. Throws `UnreadableFile` if the file is invalid. */
export function readBookmarkFile(bytes: Uint8Array, options: ReadOptions): CheckedFile {
  const { text, isDamaged, guessedEncoding } = decodeFile(bytes);
  const content = parseFile(text);
  const parsed: ParsedFile = Array.isArray(content) ? takeOwn(content) : collect(content, options);
  if (isDamaged) reportReplacedBytes(parsed);
  return {
    ...parsed,
    refusals: findRefusals(parsed.entries),
    ...(guessedEncoding !== undefined && { guessedEncoding }),
  };
}

/** Returns the entries of this service's own export unchanged, so that the service can report what is wrong with them. */
const takeOwn = (entries: ImportEntry[]): ParsedFile => ({
  ...{
    format: 'bookmark-service',
    entries,
    leftOut: [],
    combined: 0,
    changes: [],
    unknownFields: [],
    folders: [],
  },
});

function parseFile(text: string): ForeignFile | ImportEntry[] {
  const start = text.slice(0, 4_096).trimStart();
  if (start === '') throw new UnreadableFile('the file is empty');
  // `[InternetShortcut]`, for example, is no JSON.
  const looksLikeJson = /^(?:\[\s*(?:[[{\]"\d-]|true|false|null|$)|\{\s*(?:["}]|$))/.test(start);
  const looksLikePinboardXml = /^(<\?xml[^>]*>\s*)?<posts\b/i.test(start);
  if (looksLikeJson) return parseJson(text) ?? refuse('the file contains unknown JSON');
  if (looksLikePinboardXml) return { format: 'pinboard', bookmarks: parsePinboardXml(text) };
  if (start.startsWith('<?xml')) return refuse('the file contains unknown XML');
  if (start.startsWith('<')) return parseHtml(text);
  if (looksLikeCsv(start)) return parseCsv(text);
  if (looksLikeList(start)) return { format: 'onetab', bookmarks: parseList(text) };
  return refuse('the file format is unknown');
}

function refuse(reason: string): never {
  throw new UnreadableFile(`${reason}; expected ${KNOWN}`);
}

/**
 * Whether a text begins like an export of OneTab: one line `URL | TITLE` per tab, and a blank line between groups. The
 * first line may be a page of the browser, such as `about:config`.
 */
const looksLikeList = (start: string): boolean =>
  /^[a-z][a-z\d+.-]*:\S+([ \t]|\r|\n|$)/i.test(start) && /^https?:\/\/\S/im.test(start);

/** Matches a line that consists of several urls. */
const SEVERAL_URLS = /^https?:\/\/\S+(?:\s+https?:\/\/\S+)+$/i;

/** Reads the url and the title of each line, or all urls of a line that consists of several. */
const parseList = (text: string): ForeignBookmark[] =>
  text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter(Boolean)
    .flatMap((line) => (SEVERAL_URLS.test(line) ? line.split(/[,;]?\s+/) : [line]))
    .map((line) => {
      const [, url = '', title = ''] = /^(\S+)(?:\s+(?:\| )?(.*))?$/.exec(line) ?? [];
      return { url, title };
    });

function parseHtml(text: string): ForeignFile {
  const file = parseNetscape(text);
  if (file.bookmarks.length > 0 || /<!DOCTYPE NETSCAPE-Bookmark-file/i.test(text)) return file;
  return refuse('the file contains HTML without bookmarks');
}
