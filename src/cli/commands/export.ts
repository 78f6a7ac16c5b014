import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { ApiError, type BookmarkClient } from '../../client/index.ts';
import type { Bookmark } from '../../domain/resources.ts';
import { CSV_HEAD, formatCsv } from '../../formats/write-csv.ts';
import { isWebUrl, NetscapeWriter } from '../../formats/write-netscape.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

type ExportFormat = 'json' | 'html' | 'csv';

/** How often an export is tried, where it broke off before anything was written to standard output. */
const ATTEMPTS = 3;

/** Adds `export`. */
export function addExportCommand(program: Command, run: Run): void {
  program
    .command('export')
    .description('export all bookmarks')
    .argument('[file]', 'standard output when absent or -')
    .addOption(
      new Option(
        '-f, --format <format>',
        'json: all that `import` takes back; html: for browsers, with folders; csv: for spreadsheets and other ' +
          'services (default: by the end of the file name, else json)',
      ).choices(['json', 'html', 'csv']),
    )
    .option('--tag-folders', 'html: a folder for each tag, also for tags without a path', false)
    .action(run(exportAll));
}

async function exportAll(
  session: Session,
  file: string | undefined,
  { format = formatOf(file), tagFolders }: { format?: ExportFormat; tagFolders: boolean },
): Promise<void> {
  if (tagFolders && format !== 'html') throw new CliError('--tag-folders is for --format html');
  const read = (client: BookmarkClient) => pieces(session, client, format, tagFolders);
  const client = await openOwnClient(session);
  const { terminal } = session;
  if (file === undefined || file === '-') {
    for await (const piece of read(client)) await terminal.write(piece);
    if (format === 'json') await terminal.write('\n');
    return;
  }
  const bytes = await writeWhole(session, file, () => read(client));
  await terminal.print({ file, bytes }, () => `Exported to ${file} (${bytes.toLocaleString('en')} bytes)`);
}

/** What somebody who names a file so will take it for. */
function formatOf(file = ''): ExportFormat {
  if (/\.html?$/i.test(file)) return 'html';
  return /\.csv$/i.test(file) ? 'csv' : 'json';
}

/**
 * Writes to a draft beside the file and renames it at the end, so the old file stays until the export is complete.
 */
async function writeWhole(
  session: Session,
  file: string,
  read: () => AsyncIterable<Uint8Array | string>,
): Promise<number> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  for (let attempt = 1; ; attempt += 1) {
    // Only its owner may read the file.
    const handle = await open(draft, 'w', 0o600);
    try {
      const bytes = await writePieces(handle, session, read());
      await handle.sync();
      await handle.close();
      await rename(draft, file);
      return bytes;
    } catch (error) {
      await handle.close();
      await rm(draft, { force: true });
      const mayRetry = error instanceof ApiError && error.code === 'CONNECTION_LOST' && attempt < ATTEMPTS;
      if (!mayRetry) throw error;
      session.terminal.note('the export broke off; beginning anew');
    }
  }
}

async function writePieces(
  handle: FileHandle,
  { terminal }: Session,
  source: AsyncIterable<Uint8Array | string>,
): Promise<number> {
  using progress = terminal.progress();
  progress.set('exporting');
  let bytes = 0;
  for await (const piece of source) {
    const data = Buffer.from(piece as string);
    await handle.writeFile(data);
    bytes += data.length;
    progress.set(`exporting, ${(bytes / 1e6).toFixed(1)} MB`);
  }
  return bytes;
}

function pieces(
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
  const writer = new NetscapeWriter({ tagFolders });
  for await (const page of readWebPages(session, client)) for (const bookmark of page) writer.add(bookmark);
  yield* writer.pieces();
}

async function* writeCsv(session: Session, client: BookmarkClient): AsyncGenerator<string, void, undefined> {
  yield CSV_HEAD;
  for await (const page of readWebPages(session, client)) yield page.map(formatCsv).join('');
}

/** Links that are neither http nor https are left out: no service should hold one, and a browser might run it. */
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
  if (leftOut > 0) terminal.note(`left out, as their urls are neither http nor https: ${leftOut}`);
}
