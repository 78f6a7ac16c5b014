import { FIELD_NAMES } from '../domain/bookmark-fields.ts';
import type { ImportEntry } from '../domain/resources.ts';
import { hasUrl, readObjects } from './csv.ts';
import {
  type ForeignBookmark,
  type ForeignFile,
  type Format,
  isObject,
  type JsonObject,
  objectsIn,
  UnreadableFile,
} from './entry.ts';
import {
  fromBuku,
  fromKarakeep,
  fromLinkding,
  fromLinkwarden,
  fromOmnivore,
  fromPinboard,
  fromWallabag,
} from './services.ts';
import { fromChromium, fromExtensionTree, fromFirefox, isExtensionTree, isFirefoxBackup } from './trees.ts';

/** Recognizes which program wrote a JSON file, by the fields that only this program writes. */

/** The fields of an entry and of the object around the entries, as this service's export writes them. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['id', ...FIELD_NAMES]);
const OWN_ROOT: ReadonlySet<string> = new Set(['bookmarks', 'exported_at', 'count', 'mode']);

/** A service whose entries are a list. */
interface Service {
  format: Format;
  /** Whether an entry has the fields that this service, and no other, writes. */
  hasWritten(entry: JsonObject): boolean;
  read(entries: readonly JsonObject[], root: JsonObject): ForeignBookmark[];
}

const SERVICES: readonly Service[] = [
  {
    format: 'linkding',
    hasWritten: (entry) => 'tag_names' in entry,
    read: (entries) => entries.map(fromLinkding),
  },
  {
    format: 'wallabag',
    hasWritten: (entry) => 'is_archived' in entry && 'is_starred' in entry,
    read: (entries) => entries.map(fromWallabag),
  },
  {
    format: 'omnivore',
    hasWritten: (entry) => 'slug' in entry && 'savedAt' in entry,
    read: (entries) => entries.map(fromOmnivore),
  },
  {
    format: 'karakeep',
    hasWritten: (entry) => isObject(entry.content) && !('url' in entry),
    read: (entries, { lists }) => fromKarakeep(entries, lists),
  },
  {
    format: 'pinboard',
    hasWritten: (entry) => 'href' in entry && ('extended' in entry || 'toread' in entry),
    read: (entries) => entries.map(fromPinboard),
  },
  {
    format: 'buku',
    hasWritten: (entry) => 'uri' in entry && 'index' in entry,
    read: (entries) => entries.map(fromBuku),
  },
];

/** The fields that programs keep the list of bookmarks in. */
const LIST_NAMES = ['bookmarks', 'results', 'items', 'links', 'data', 'entries', 'list'];

/**
 * Reads a JSON file. Returns undefined if it is not known. Returns the entries of this service's own export unchanged,
 * so that the service can report what is wrong with them.
 */
export function parseJson(text: string): ForeignFile | ImportEntry[] | undefined {
  const value = parseValue(text);
  // If the JSON is an array, `root` is an empty object.
  const root: JsonObject = isObject(value) ? value : {};
  if (isFirefoxBackup(root)) return { format: 'firefox', bookmarks: fromFirefox(root) };
  if (isObject(root.roots)) return { format: 'chrome', bookmarks: fromChromium(root.roots) };
  const collections = objectsIn(root.collections);
  if (collections.some(({ links }) => Array.isArray(links)))
    return { format: 'linkwarden', bookmarks: fromLinkwarden(collections, root.pinnedLinks) };
  if (isExtensionTree(value)) return { format: 'json', bookmarks: fromExtensionTree(value) };
  const entries = Array.isArray(value)
    ? value
    : LIST_NAMES.map((name) => root[name]).find((list) => Array.isArray(list));
  return Array.isArray(entries) ? readEntries(entries, root) : undefined;
}

function readEntries(entries: unknown[], root: JsonObject): ForeignFile | ImportEntry[] | undefined {
  const objects = objectsIn(entries);
  const hasOwnRoot = Object.keys(root).every((name) => OWN_ROOT.has(name));
  const hasOwnFields = objects.every((entry) => Object.keys(entry).every((name) => OWN_FIELDS.has(name)));
  if (hasOwnRoot && hasOwnFields && (entries.length === 0 || objects.some(({ url }) => url !== undefined)))
    return entries as ImportEntry[];
  const service = SERVICES.find(({ hasWritten }) => objects.some(hasWritten));
  const file = service
    ? { format: service.format, bookmarks: service.read(objects, root) }
    : objects.some(hasUrl) && readObjects(objects);
  if (!file) return undefined;
  const others = entries.filter((entry) => !isObject(entry));
  return { ...file, bookmarks: [...file.bookmarks, ...others.map(leaveOut)] };
}

/** Leaves out a value that is not an object. Shows it in the place of its url. */
const leaveOut = (value: unknown): ForeignBookmark => ({ url: JSON.stringify(value), omission: 'no-entry' });

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableFile('the file is not complete JSON');
  }
}
