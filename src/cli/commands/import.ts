import { readFile, writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { BookmarkClient } from '../../client/index.ts';
import { BOUNDS } from '../../domain/bounds.ts';
import type { ImportEntry, ImportResult } from '../../domain/resources.ts';
import { findRefusals, type Refusal } from '../../formats/check-entries.ts';
import type { ChangeKind, Omission } from '../../formats/entry.ts';
import { type CheckedFile, readBookmarkFile } from '../../formats/read-file.ts';
import { writeCsvHead, writeCsvRow } from '../../formats/write-csv.ts';
import { tagsOption } from '../arguments.ts';
import { askLine } from '../ask.ts';
import { formatCount, toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** The bytes of a request's body that are reserved for everything except the list of bookmarks. */
const OVERHEAD_BYTES = 1_024;

/** How long the client retries an import. The service may refuse it until another import of the same account ends. */
const RETRY_FOR_MS = 180_000;

/** At most this many lines of a list are printed. */
const SHOWN_LINES = 10;

interface ImportOptions {
  replace?: boolean;
  yes?: boolean;
  dryRun?: boolean;
  folders: boolean;
  skipped?: string;
  tag?: string[];
}

const HELP = `
Imports files from these sources and detects the format:
  this service   JSON, as \`bookmarks export\` writes it
  any browser    HTML ("Export bookmarks"), a Firefox JSON backup, the file Bookmarks of Chrome, Edge, Vivaldi or Opera
  Pinboard       JSON, XML or HTML; "to read" becomes the tag toread
  Raindrop       CSV or HTML; collections become tags, favorites the tag favorite
  linkding       HTML or the API's JSON; unread becomes the tag toread, archived the tag archived
  Linkwarden     JSON; collections become tags, pinned links the tag favorite
  Karakeep       JSON; lists become tags, archived the tag archived, favourites the tag favorite
  Pocket         CSV or HTML; unread becomes the tag toread, archived the tag archived
  Instapaper     CSV or HTML; unread, archived, liked and folders become tags
  Omnivore       JSON (metadata_….json); archived becomes the tag archived
  wallabag       JSON; archived becomes the tag archived, starred the tag favorite
  buku           HTML or JSON
  OneTab         the text of "Export URLs"
  others         CSV with a header row and a column named url, or a JSON list of objects with a field url
The path of a folder becomes one tag, for example Work/Databases. A / in a folder's name becomes \\/.
All bookmarks in this service are private, so privacy flags are dropped.
An import is one transaction: if it is interrupted, either everything is imported or nothing. It takes at most 100,000 bookmarks.
If the service refuses some bookmarks, it imports the others and the command exits with 1.
Every link of the file is imported, combined with another one, or listed with the reason why not.
Texts that are too long are shortened, and unreadable dates are dropped. The command lists such changes.`;

/** Adds the command `import`. */
export function addImportCommand(program: Command, run: Run): void {
  program
    .command('import')
    .description('import bookmarks from a file of this service, a browser or another program')
    .argument('<file>', 'the file, or - for standard input')
    .option('--replace', 'replace ALL your bookmarks with those in the file')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only report what the file contains and what would not be imported')
    .option('--skipped <file>', 'write the entries that are not imported, with the reason, to this CSV file')
    .option('--no-folders', 'do not turn folders into tags')
    .addOption(tagsOption('also add this tag to every bookmark; may be repeated'))
    .addHelpText('after', HELP)
    .action(run(importFile));
}

async function importFile(session: Session, file: string, options: ImportOptions): Promise<void> {
  const { terminal } = session;
  const parsed = await readEntries(session, file, options);
  const { format, combined, leftOut, entries, refusals, folders, changes, unknownFields } = parsed;
  const report = {
    ...{
      format,
      read: entries.length,
      combined,
      left_out: leftOut,
      changes,
      unknown_fields: unknownFields,
      folders,
    },
  };
  if (options.dryRun) {
    await writeSkipped(options.skipped, parsed, refusals);
    return terminal.print({ ...report, refused: refusals }, () =>
      [
        describeFile(parsed),
        ...describeFolders(parsed),
        ...describeRefusals('Will be refused by the service', refusals),
        ...describeDifferences(parsed),
      ].join('\n'),
    );
  }
  const client = await openOwnClient(session);
  if (options.replace && !options.yes) await confirmReplace(session, entries.length);
  const result = await send(session, client, entries, options.replace ? 'replace' : 'merge');
  await writeSkipped(options.skipped, parsed, result.errors);
  await terminal.print({ ...result, ...report }, () => describeResult(parsed, result).join('\n'));
  const refused = result.errors.length;
  if (refused > 0)
    throw new CliError(
      `the service refused ${refused.toLocaleString('en')} of ${count(entries.length)}`,
      undefined,
      'FAILED',
    );
}

async function readEntries(
  { terminal }: Session,
  file: string,
  { folders, tag = [] }: ImportOptions,
): Promise<CheckedFile> {
  using progress = terminal.progress();
  progress.set(`reading ${file}`);
  const bytes = file === '-' ? await buffer(terminal.streams.stdin) : await readFile(file);
  const parsed = readBookmarkFile(bytes, { foldersAsTags: folders });
  const entries = parsed.entries.map((entry) => addTags(entry, tag));
  requireLimits(file, entries);
  // If `--tag` has added tags, the entries are checked again, because the added tags count towards the limits.
  return { ...parsed, entries, refusals: tag.length === 0 ? parsed.refusals : findRefusals(entries) };
}

async function send(
  { terminal, signal }: Session,
  client: BookmarkClient,
  bookmarks: ImportEntry[],
  mode: 'merge' | 'replace',
): Promise<ImportResult> {
  using progress = terminal.progress();
  const showUpload = (bytes: number, total: number) =>
    progress.set(
      bytes < total
        ? `uploading, ${megabytes(bytes)} of ${megabytes(total)} MB`
        : `uploaded ${megabytes(total)} MB; the service is importing ${count(bookmarks.length)}`,
    );
  return await client.importBookmarks(
    { bookmarks, mode },
    { signal, retryForMs: RETRY_FOR_MS, onUpload: showUpload },
  );
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);

/**
 * Adds tags to an entry. If the entry's own tags are not a list, returns the entry unchanged, and the service refuses
 * it.
 */
function addTags(entry: ImportEntry, tags: string[]): ImportEntry {
  // A file may contain any JSON, for example null instead of an entry.
  const ownTags = entry?.tags ?? [];
  if (tags.length === 0 || !Array.isArray(ownTags)) return entry;
  return { ...entry, tags: [...ownTags, ...tags] };
}

/** Throws if the bookmarks exceed the limits of one import. */
function requireLimits(file: string, bookmarks: ImportEntry[]): void {
  const advice =
    'An import is one transaction, so the command does not split the file. Split it, and import each part.';
  if (bookmarks.length > BOUNDS.importEntries) {
    throw new CliError(
      `${file} contains ${count(bookmarks.length)}; an import takes at most 100,000`,
      advice,
    );
  }
  if (Buffer.byteLength(JSON.stringify(bookmarks)) > BOUNDS.importBytes - OVERHEAD_BYTES) {
    throw new CliError(`${file} contains more than the 64 MiB that an import takes`, advice);
  }
}

/** Asks whether to replace all bookmarks. Throws unless the user answers yes. */
async function confirmReplace(session: Session, entries: number): Promise<void> {
  const question = `Replace ALL your bookmarks with ${count(entries)} from the file? [y/N] `;
  if (session.terminal.streams.stdin.isTTY !== true) {
    throw new CliError('--replace removes all your bookmarks', 'Add --yes to confirm.');
  }
  const answer = await askLine(session, question);
  if (!/^y(es)?$/i.test(answer ?? '')) throw new CliError('nothing was changed', undefined, 'FAILED');
}

const count = (bookmarks: number): string => formatCount(bookmarks, 'bookmark');

const NAMES: Record<CheckedFile['format'], string> = {
  'bookmark-service': 'a JSON export of this service',
  netscape: 'a browser’s bookmark file',
  pinboard: 'a Pinboard export',
  raindrop: 'a Raindrop export',
  linkding: 'a linkding export',
  linkwarden: 'a Linkwarden backup',
  karakeep: 'a Karakeep export',
  pocket: 'a Pocket export',
  instapaper: 'an Instapaper export',
  omnivore: 'an Omnivore export',
  wallabag: 'a wallabag export',
  firefox: 'a Firefox backup',
  chrome: 'a Chrome bookmark file',
  onetab: 'a OneTab list',
  buku: 'a buku export',
  csv: 'a CSV file',
  json: 'a JSON list',
};

const OMISSIONS: Record<Omission, string> = {
  'no-url': 'it has no url',
  'not-web': 'not a web page',
  'bad-url': 'the url is invalid',
  trash: 'in the trash',
  truncated: 'the file ends inside the entry',
  'no-entry': 'not a bookmark',
};

const CHANGES: Record<ChangeKind, string> = {
  'title-shortened': 'the title was shortened, and its rest moved to the comment',
  'comment-shortened': 'the comment was shortened',
  'tag-shortened': 'a tag was shortened',
  'folder-shortened': 'the path of a folder was shortened',
  'tags-dropped': 'tags beyond the first 100 were dropped',
  'date-dropped': 'an unreadable date was dropped',
  'value-dropped': 'a value that is not text was dropped',
  'bytes-replaced': 'unreadable characters were replaced',
};

function describeFile({ format, entries, combined }: CheckedFile): string {
  const merged = combined === 0 ? '' : `; ${formatCount(combined, 'duplicate')} combined`;
  return `${count(entries.length)} in ${NAMES[format]}${merged}`;
}

function describeFolders({ folders }: CheckedFile): string[] {
  if (folders.length === 0) return [];
  const lines = folders.map(
    ({ folder, tag, bookmarks }) =>
      `  ${toLine(folder.join(' › '))}: tag ${toLine(tag)}, ${count(bookmarks)}`,
  );
  return [`Folders that become tags: ${folders.length.toLocaleString('en')}`, ...shorten(lines)];
}

function describeRefusals(title: string, refusals: readonly Refusal[]): string[] {
  if (refusals.length === 0) return [];
  const lines = refusals.map(
    ({ index, url, error }) => `  entry ${index + 1} (${toLine(url ?? 'no url').slice(0, 60)}): ${error}`,
  );
  return [`${title}: ${refusals.length.toLocaleString('en')}`, ...shorten(lines)];
}

/** Writes a CSV file of all entries that were not imported, with the reason for each. */
async function writeSkipped(
  file: string | undefined,
  { leftOut }: CheckedFile,
  refusals: readonly Refusal[],
): Promise<void> {
  if (file === undefined) return;
  const head = writeCsvHead(['url', 'title', 'reason']);
  const rows = [
    // A refusal contains no title.
    ...refusals.map(({ url, error }) => [url ?? '', '', error]),
    ...leftOut.map(({ url, title, reason }) => [url, title, OMISSIONS[reason]]),
  ];
  await writeFile(file, head + rows.map(writeCsvRow).join(''), { mode: 0o600 });
}

/** Describes what differs between the file and the import, except what the service refuses. */
function describeDifferences({ leftOut, changes, unknownFields, guessedEncoding }: CheckedFile): string[] {
  const excerpt = (text: string) => toLine(text).slice(0, 60);
  const omissions = leftOut.map(({ url, title, reason }) => {
    const name = [title, url].map(excerpt).filter(Boolean).join(': ') || 'an entry';
    return `  ${name} (${OMISSIONS[reason]})`;
  });
  const changed = changes.map(
    ({ url, change, text }) => `  ${excerpt(url)}: ${CHANGES[change]}: ${excerpt(text)}`,
  );
  return [
    ...(omissions.length === 0
      ? []
      : [`Left out: ${omissions.length.toLocaleString('en')}`, ...shorten(omissions)]),
    ...(changed.length === 0 ? [] : [`Changed: ${changed.length.toLocaleString('en')}`, ...shorten(changed)]),
    ...(unknownFields.length === 0 ? [] : [`Not read: the fields ${unknownFields.map(toLine).join(', ')}`]),
    ...(guessedEncoding === undefined ? [] : [`Read as ${guessedEncoding}, because the file is not UTF-8`]),
  ];
}

function describeResult(file: CheckedFile, { imported, skipped, errors }: ImportResult): string[] {
  const skippedNote =
    skipped === 0 ? '' : `, ${skipped.toLocaleString('en')} skipped because they already exist`;
  return [
    describeFile(file),
    `Imported ${count(imported)}${skippedNote}`,
    ...describeRefusals('Refused by the service', errors),
    ...describeDifferences(file),
  ];
}

/** Cuts a list to `SHOWN_LINES`, and says how many lines are missing. */
const shorten = (lines: string[]): string[] =>
  lines.length <= SHOWN_LINES
    ? lines
    : [
        ...lines.slice(0, SHOWN_LINES),
        `  and ${lines.length - SHOWN_LINES} more; list all with --json or --skipped`,
      ];
