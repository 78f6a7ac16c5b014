import { UnreadableFile } from './entry.ts';

/** Decodes the bytes of a file. Names files that are not text, and says what to do with them. */

/** The first bytes of files that are not text, and how to get a readable file instead. */
const BINARY: readonly (readonly [start: string, advice: string])[] = [
  [
    'mozLz40\0',
    'the file is a compressed backup of Firefox (.jsonlz4); in Firefox, open Bookmarks, Manage Bookmarks, choose Import and Backup, Backup… or Export Bookmarks to HTML…, and import that file',
  ],
  ['PK\u0003\u0004', 'the file is a ZIP archive; unpack it, and import the files in it'],
  ['\u001f\u008b', 'the file is compressed with gzip; unpack it, and import the file in it'],
  ['BZh', 'the file is compressed with bzip2; unpack it, and import the file in it'],
  ['\u00fd7zXZ\0', 'the file is compressed with xz; unpack it, and import the file in it'],
  ['(\u00b5/\u00fd', 'the file is compressed with zstd; unpack it, and import the file in it'],
  ["7z\u00bc\u00af'\u001c", 'the file is a 7-Zip archive; unpack it, and import the files in it'],
  ['Rar!', 'the file is a RAR archive; unpack it, and import the files in it'],
  [
    'SQLite format 3\0',
    "the file is a database, such as Firefox's places.sqlite; export the bookmarks as HTML or JSON from the program that made it",
  ],
  [
    'bplist00',
    "the file is a binary property list, such as Safari's Bookmarks.plist; in Safari, choose File, Export, Bookmarks…, and import that file",
  ],
  ['%PDF', 'the file is a PDF; export the bookmarks as HTML, JSON or CSV'],
];

/** A decoded file. */
interface DecodedFile {
  text: string;
  /** The encoding, if nothing in the file names it and it is not UTF-8. */
  guessedEncoding?: string;
  /** Whether the file contains bytes that are not valid in its encoding. U+FFFD is in their place. */
  isDamaged: boolean;
}

/** Decodes a file. Throws `UnreadableFile` if it is not text. */
export function decodeFile(bytes: Uint8Array): DecodedFile {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024));
  const binary = BINARY.find(([start]) => latin1(bytes, start.length) === start);
  if (binary !== undefined) throw new UnreadableFile(binary[1]);
  const label = findEncoding(bytes, head);
  try {
    return { text: new TextDecoder(label, { fatal: true }).decode(bytes), isDamaged: false };
  } catch {
    return decodeInvalid(bytes, label);
  }
}

/** Returns the first bytes as characters with the same numbers. `TextDecoder` would decode windows-1252 instead. */
const latin1 = (bytes: Uint8Array, length: number): string =>
  String.fromCharCode(...bytes.subarray(0, length));

/** Matches four characters in a row that ASCII does not have. In Western European texts, there are hardly ever so many. */
const MANY_BYTES = /[\u0080-\uffff]{4}/;

/**
 * Decodes a file that is not valid in its encoding. If most of it is valid UTF-8, the file is damaged. If only Western
 * European letters are not, a spreadsheet or an old program has written windows-1252.
 */
function decodeInvalid(bytes: Uint8Array, label: string): DecodedFile {
  const unreadable = new UnreadableFile(`the file is not text in ${label}; save it as UTF-8`);
  if (label !== 'utf-8') throw unreadable;
  const text = new TextDecoder(label).decode(bytes);
  const damaged = text.match(/\ufffd/g)?.length ?? 0;
  const valid = text.match(/[^\0-\x7f\ufffd]/gu)?.length ?? 0;
  if (valid > damaged) return { text, isDamaged: true };
  const western = new TextDecoder('windows-1252').decode(bytes);
  if (MANY_BYTES.test(western)) throw unreadable;
  return { text: western, guessedEncoding: 'windows-1252', isDamaged: false };
}

/** Matches the `<META>` element that names the encoding of HTML. */
const META_CHARSET = /<meta[^>]+charset=["']?(?<label>[\w-]{1,40})/i;

/** Matches the declaration of XML that names its encoding. */
const XML_ENCODING = /^<\?xml[^>]+encoding=["'](?<label>[\w-]{1,40})/i;

/**
 * Finds the encoding as browsers do: by the first bytes, then by the `<META>` element of HTML. The default is UTF-8.
 */
function findEncoding(bytes: Uint8Array, head: string): string {
  const [first = 1, second = 1] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  // UTF-16 without a byte order mark: files begin with a character of ASCII.
  if (first === 0 || second === 0) return first === 0 ? 'utf-16be' : 'utf-16le';
  const start = head.trimStart();
  // Only HTML and XML begin with `<`. In other formats, a `<META>` element can only be part of a title. A file with the
  // byte order mark of UTF-8 does not begin with `<` either.
  if (!start.startsWith('<')) return 'utf-8';
  const match = XML_ENCODING.exec(start) ?? META_CHARSET.exec(start);
  const label = match?.groups?.label?.toLowerCase() ?? 'utf-8';
  // A label that names UTF-16 must be wrong, because the patterns do not match in a file that is UTF-16.
  return label.startsWith('utf-16') || label === 'utf8' ? 'utf-8' : label;
}
