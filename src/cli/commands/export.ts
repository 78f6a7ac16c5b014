import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { ApiError, type BookmarkClient } from '../../client/index.ts';
import type { Bookmark } from '../../domain/resources.ts';
import { CSV_HEAD, formatCsv } from '../../formats/write-csv.ts';
import { formatNetscapeFile, isWebUrl } from '../../formats/write-netscape.ts';
import { CliError } from '../faults.ts';
import { replaceFile } from '../replace-file.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

type ExportFormat = 'json' | 'html' | 'csv';

/** The maximum number of attempts to export to a file. Only a lost connection leads to another attempt. */
const ATTEMPTS = 3;

/** Adds the command `export`. */
export function addExportCommand(program: Command, run: Run): void {
  program
    .command('export')
    .description('export all bookmarks')
    .argument('[file]', 'the file to write; standard output if omitted or -')
    .addOption(
      new Option(
        '-f, --format <format>',
        'json: everything, for `import`; html: for browsers, with folders; csv: for spreadsheets and other ' +
          'services (default: by the file extension, or else json)',
      ).choices(['json', 'html', 'csv']),
    )
    .option('--tag-folders', 'html: make a folder for every tag, even for tags without a path')
    .action(run(exportAll));
}

async function exportAll(
  session: Session,
  file: string | undefined,
  { format = formatOf(file), tagFolders = false }: { format?: ExportFormat; tagFolders?: boolean },
): Promise<void> {
  if (tagFolders && format !== 'html') throw new CliError('--tag-folders requires --format html');
  const read = (client: BookmarkClient) => readChunks(session, client, format, tagFolders);
  const client = await openOwnClient(session);
  const { terminal } = session;
  if (file === undefined || file === '-') {
    for await (const chunk of read(client)) await terminal.write(chunk);
    if (format === 'json') await terminal.write('\n');
    return;
  }
  const bytes = await writeWhole(session, file, () => read(client));
  await terminal.print({ file, bytes }, () => `Exported to ${file} (${bytes.toLocaleString('en')} bytes)`);
}

/** Guesses the format from the file's extension. */
function formatOf(file = ''): ExportFormat {
  if (/\.html?$/i.test(file)) return 'html';
  return /\.csv$/i.test(file) ? 'csv' : 'json';
}

/**
 * Writes an export to a file. Until the end, the old file is unchanged. If `path` is a symbolic link, replaces the
 * file that the link points to. If `path` is not a regular file but, for example, a named pipe or `/dev/stdout`, writes
 * directly to it. Returns the number of bytes.
 */
async function writeWhole(
  session: Session,
  path: string,
  read: () => AsyncIterable<Uint8Array | string>,
): Promise<number> {
  const existing = await stat(path).catch(() => undefined);
  if (existing !== undefined && !existing.isFile()) {
    await using handle = await open(path, 'w');
    return await writeChunks(handle, session, read());
  }
  const file = existing === undefined ? path : await realpath(path);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await replaceFile(file, async (draft) => {
        const bytes = await writeChunks(draft, session, read());
        await draft.sync();
        return bytes;
      });
    } catch (error) {
      const mayRetry = error instanceof ApiError && error.code === 'CONNECTION_LOST' && attempt < ATTEMPTS;
      if (!mayRetry) throw error;
      session.terminal.note('the export was interrupted; starting again');
    }
  }
}

async function writeChunks(
  handle: FileHandle,
  { terminal }: Session,
  source: AsyncIterable<Uint8Array | string>,
): Promise<number> {
  using progress = terminal.progress();
  progress.set('exporting');
  let bytes = 0;
  for await (const chunk of source) {
    const data = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    await handle.writeFile(data);
    bytes += data.length;
    progress.set(`exporting, ${(bytes / 1e6).toFixed(1)} MB`);
  }
  return bytes;
}

function readChunks(
  session: Session,
  client: BookmarkClient,
  format: ExportFormat,
  tagFolders: boolean,
): AsyncIterable<Uint8Array | string> {
  if (format === 'json') return client.exportStream({ signal: session.signal });
  return format === 'html' ? writeHtml(session, client, tagFolders) : writeCsv(session, client);
}

async function* writeHtml(
  session: Session,
  client: BookmarkClient,
  tagFolders: boolean,
): AsyncGenerator<string, void, undefined> {
  // All bookmarks must be read before the first line is written, because any of them can add a folder.
  const bookmarks: Bookmark[] = [];
  for await (const page of readWebPages(session, client)) bookmarks.push(...page);
  yield* formatNetscapeFile(bookmarks, { tagFolders });
}

async function* writeCsv(session: Session, client: BookmarkClient): AsyncGenerator<string, void, undefined> {
  yield CSV_HEAD;
  for await (const page of readWebPages(session, client)) yield page.map(formatCsv).join('');
}

/**
 * Yields the bookmarks with http and https urls. Leaves out the others, because a browser could run their urls as code.
 */
async function* readWebPages(
  { terminal, signal }: Session,
  client: BookmarkClient,
): AsyncGenerator<Bookmark[], void, undefined> {
  let leftOut = 0;
  for await (const page of client.listAll({ signal })) {
    const links = page.filter(({ url }) => isWebUrl(url));
    leftOut += page.length - links.length;
    yield links;
  }
  if (leftOut > 0) terminal.note(`left out because their urls are not http or https: ${leftOut}`);
}
