import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { BookmarkClient } from '../../client/index.ts';
import type { ImportEntry, ImportResult } from '../../domain/resources.ts';
import type { ParsedFile } from '../../formats/entry.ts';
import { readBookmarkFile } from '../../formats/read-file.ts';
import { tagsOption } from '../arguments.ts';
import { askLine } from '../ask.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** The service's limits for one import (decisions 2 and 9). */
const MAX_ENTRIES = 100_000;
const MAX_BODY_BYTES = 67_108_864;

/** Long enough for another import of the same user to end. */
const RETRY_FOR_MS = 180_000;

/** How many errors are printed one by one. */
const SHOWN_FAULTS = 10;

interface ImportOptions {
  replace: boolean;
  yes: boolean;
  dryRun: boolean;
  folders: boolean;
  tag?: string[];
}

const HELP = `
Takes what these export, and sees by itself which of them it is:
  this service   JSON, as \`bookmarks export\` writes it
  any browser    HTML ("Export bookmarks"); folders become tags
  Pinboard       JSON, XML or HTML; "to read" becomes the tag toread
  Raindrop       CSV or HTML; collections become tags, favorites the tag favorite
  linkding       HTML or the API's JSON; unread becomes the tag toread, archived the tag archived
  others         CSV with a header that has a column url
Everything here is private, so flags for private bookmarks are dropped.
An import is one transaction: after a fault all of it is there or nothing. It takes at most 100,000 bookmarks.
Where the service refuses some of them, the others are imported and the command ends with 1.`;

/** Adds `import`. */
export function addImportCommand(program: Command, run: Run): void {
  program
    .command('import')
    .description('import bookmarks from a file of this service, a browser or another service')
    .argument('<file>', '- for standard input')
    .option('--replace', 'put them in the place of ALL your bookmarks', false)
    .option('-y, --yes', 'do not ask before replacing', false)
    .option('--dry-run', 'only say what is in the file', false)
    .option('--no-folders', 'do not make tags of folders')
    .addOption(tagsOption('give this tag to all of them too'))
    .addHelpText('after', HELP)
    .action(run(importFile));
}

async function importFile(session: Session, file: string, options: ImportOptions): Promise<void> {
  const { terminal } = session;
  const parsed = await readEntries(session, file, options);
  const { format, combined, leftOut, entries } = parsed;
  const report = { format, read: entries.length, combined, left_out: leftOut };
  if (options.dryRun) {
    return terminal.print(report, () => [describeFile(parsed), ...describeLeftOut(parsed)].join('\n'));
  }
  const client = await openOwnClient(session);
  if (options.replace && !options.yes) await confirmReplace(session, entries.length);
  const result = await send(session, client, entries, options.replace ? 'replace' : 'merge');
  await terminal.print({ ...result, ...report }, () => describeResult(parsed, result).join('\n'));
  const refused = result.errors.length;
  if (refused > 0)
    throw new CliError(`the service refused ${refused.toLocaleString('en')} of ${count(entries.length)}`);
}

async function readEntries(
  { terminal }: Session,
  file: string,
  { folders, tag = [] }: ImportOptions,
): Promise<ParsedFile> {
  using progress = terminal.progress();
  progress.set(`reading ${file}`);
  const bytes = file === '-' ? await buffer(terminal.streams.stdin) : await readFile(file);
  const parsed = readBookmarkFile(bytes, { foldersAsTags: folders });
  const entries = parsed.entries.map((entry) => addTags(entry, tag));
  requireBounds(file, entries);
  return { ...parsed, entries };
}

async function send(
  { terminal, signal }: Session,
  client: BookmarkClient,
  bookmarks: ImportEntry[],
  mode: 'merge' | 'replace',
): Promise<ImportResult> {
  using progress = terminal.progress();
  progress.set(`importing ${count(bookmarks.length)}`);
  return await client.importBookmarks({ bookmarks, mode }, { signal, retryForMs: RETRY_FOR_MS });
}

/** Entries that are not objects stay as they are: the service describes what is wrong. */
function addTags(entry: ImportEntry, tags: string[]): ImportEntry {
  const given = entry?.tags ?? [];
  if (tags.length === 0 || !Array.isArray(given)) return entry;
  return { ...entry, tags: [...given, ...tags] };
}

function requireBounds(file: string, bookmarks: ImportEntry[]): void {
  const advice = 'An import is one transaction, so it is not split by itself: import the file in parts.';
  if (bookmarks.length > MAX_ENTRIES) {
    throw new CliError(`${file} holds ${count(bookmarks.length)}; an import takes at most 100,000`, advice);
  }
  if (Buffer.byteLength(JSON.stringify(bookmarks)) > MAX_BODY_BYTES - 1_024) {
    throw new CliError(`${file} holds more than the 64 MiB that an import takes`, advice);
  }
}

async function confirmReplace(session: Session, entries: number): Promise<void> {
  const question = `Put ${count(entries)} in the place of ALL your bookmarks? [y/N] `;
  if (session.terminal.streams.stdin.isTTY !== true) {
    throw new CliError('--replace removes all your bookmarks', 'Where nobody can be asked, say --yes too.');
  }
  const answer = await askLine(session, question);
  if (!/^y(es)?$/i.test(answer ?? '')) throw new CliError('nothing was changed');
}

const count = (bookmarks: number): string =>
  `${bookmarks.toLocaleString('en')} ${bookmarks === 1 ? 'bookmark' : 'bookmarks'}`;

const NAMES: Record<ParsedFile['format'], string> = {
  'bookmark-service': 'JSON of this service',
  netscape: 'a browser’s bookmark file',
  pinboard: 'a Pinboard export',
  raindrop: 'a Raindrop export',
  linkding: 'a linkding export',
  csv: 'CSV',
};

function describeFile({ format, entries, combined }: ParsedFile): string {
  const merged =
    combined === 0 ? '' : `; ${combined.toLocaleString('en')} that were there twice are combined`;
  return `${count(entries.length)} in ${NAMES[format]}${merged}`;
}

function describeLeftOut({ leftOut }: ParsedFile): string[] {
  if (leftOut.length === 0) return [];
  const lines = leftOut.map(
    ({ url, title }) => `  ${toLine(title || url).slice(0, 60)}: ${toLine(url).slice(0, 60)}`,
  );
  return [`Left out, since they are no web pages: ${leftOut.length}`, ...shorten(lines)];
}

function describeResult(parsed: ParsedFile, { imported, skipped, errors }: ImportResult): string[] {
  const there = skipped === 0 ? '' : `, ${skipped.toLocaleString('en')} skipped: they are there already`;
  const faults = errors.map(
    ({ index, url, error }) => `  entry ${index + 1} (${toLine(url ?? 'no url').slice(0, 60)}): ${error}`,
  );
  return [
    describeFile(parsed),
    `Imported ${count(imported)}${there}`,
    ...(errors.length === 0 ? [] : [`Refused by the service: ${errors.length}`, ...shorten(faults)]),
    ...describeLeftOut(parsed),
  ];
}

const shorten = (lines: string[]): string[] =>
  lines.length <= SHOWN_FAULTS
    ? lines
    : [...lines.slice(0, SHOWN_FAULTS), `  and ${lines.length - SHOWN_FAULTS} more; --json names all`];
