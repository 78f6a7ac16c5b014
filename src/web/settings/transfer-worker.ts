import { EndpointClient } from '../../client/client.ts';
import { ApiError } from '../../client/errors.ts';
import type { BookmarkExport, ImportEntry } from '../../domain/resources.ts';
import { parseWebUrl } from '../../domain/web-url.ts';
import { UnreadableFile } from '../../formats/entry.ts';
import { readBookmarkFile } from '../../formats/read-file.ts';
import { CSV_HEAD, formatCsv } from '../../formats/write-csv.ts';
import { formatNetscapeFile, isWebUrl } from '../../formats/write-netscape.ts';
import type { Fault, Order, Outcome, Report } from './transfer.ts';

/**
 * A worker that reads a file of bookmarks, imports it, and exports all bookmarks. It uses the session of the page. The
 * bookmarks of the file stay in the worker. The page gets only counts, the folders, the first few bookmarks, and the
 * entries that are not imported.
 */

const client = new EndpointClient({ baseUrl: `${location.origin}/web/api/v1` });

const send = (report: Report): void => postMessage(report);

/**
 * The most entries in a batch. A merge is sent in batches, so that its progress can be shown. Each batch is a
 * transaction of its own, and sending a batch twice does no harm. 100,000 short entries take 40 requests. That is less
 * than half of what the rate limit allows in one minute.
 */
const BATCH_ENTRIES = 2_500;

/** The most characters in a batch. The service puts a body of more than 1 MiB into a queue. */
const BATCH_LENGTH = 900_000;

let entries: ImportEntry[] = [];
let onSignedIn: (isSignedIn: boolean) => void = () => {};

/** Makes a call. If the session has ended, waits until the user has signed in on the page, and makes the call again. */
async function ask<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'INVALID_TOKEN') throw error;
      const signedIn = new Promise<boolean>((resolve) => {
        onSignedIn = resolve;
      });
      send({ kind: 'signed-out' });
      if (!(await signedIn)) throw error;
    }
  }
}

async function read(file: File, foldersAsTags: boolean, hasBookmarks: boolean): Promise<void> {
  const parsed = readBookmarkFile(new Uint8Array(await file.arrayBuffer()), { foldersAsTags });
  entries = parsed.entries;
  const refused = new Set(parsed.refusals.map(({ index }) => index));
  const urls = entries.filter((_, index) => !refused.has(index)).map((entry) => entry?.url);
  const names = entries.flatMap((entry) => (Array.isArray(entry?.tags) ? entry.tags : []));
  const tags = new Set(names.map((tag) => (typeof tag === 'string' ? tag : String(tag?.name)).toLowerCase()));
  send({
    kind: 'preview',
    preview: {
      format: parsed.format,
      count: entries.length,
      addresses: new Set(urls).size,
      combined: parsed.combined,
      leftOut: parsed.leftOut,
      changes: parsed.changes,
      unknownFields: parsed.unknownFields,
      guessedEncoding: parsed.guessedEncoding,
      refused: parsed.refusals,
      tags: tags.size,
      folders: parsed.folders,
      first: entries
        .slice(0, 5)
        .map((entry) => ({ url: String(entry?.url ?? ''), title: String(entry?.title ?? '') })),
    },
  });
  if (!hasBookmarks) return;
  // The preview works without this number, so an error is not reported.
  const count = await countKnown(urls.map(String)).catch(() => undefined);
  if (count !== undefined) send({ kind: 'known', count });
}

function* batches(): Generator<ImportEntry[]> {
  let batch: ImportEntry[] = [];
  let length = 0;
  for (const entry of entries) {
    const entryLength = JSON.stringify(entry).length;
    if (batch.length > 0 && (batch.length === BATCH_ENTRIES || length + entryLength > BATCH_LENGTH)) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(entry);
    length += entryLength;
  }
  if (batch.length > 0) yield batch;
}

/** Imports the entries. If a batch fails, the report covers the batches before it. */
async function importEntries(mode: 'merge' | 'replace'): Promise<void> {
  const outcome: Outcome = { imported: 0, skipped: 0, errors: [] };
  let done = 0;
  try {
    for (const bookmarks of mode === 'replace' ? [entries] : batches()) {
      const { imported, skipped, errors } = await ask(() => client.importBookmarks({ bookmarks, mode }));
      outcome.imported += imported;
      outcome.skipped += skipped;
      outcome.errors.push(...errors);
      done += bookmarks.length;
      send({ kind: 'progress', done });
    }
    send({ kind: 'outcome', outcome });
  } catch (error) {
    send({ kind: 'outcome', outcome, fault: describe(error) });
  }
}

/** A text that occurs exactly once in each bookmark of an export, because quotes inside a text are escaped. */
const MARK = '"created_at":"';

async function exportAll(format: 'json' | 'html' | 'csv'): Promise<void> {
  const { texts, count } = await ask(() => readExport((done) => send({ kind: 'progress', done })));
  const formatFile = { json: formatJson, html: formatHtml, csv: formatCsvFile }[format];
  send({ kind: 'file', file: formatFile(texts), count });
}

async function readExport(onProgress?: (done: number) => void): Promise<{ texts: string[]; count: number }> {
  const decoder = new TextDecoder();
  const texts: string[] = [];
  let count = 0;
  let tail = '';
  for await (const chunk of client.exportStream()) {
    const text = decoder.decode(chunk, { stream: true });
    texts.push(text);
    // A mark may begin in one chunk and end in the next.
    const joined = tail + text;
    count += joined.split(MARK).length - 1;
    tail = joined.slice(1 - MARK.length);
    onProgress?.(count);
  }
  return { texts, count };
}

const parseExport = (texts: readonly string[]): BookmarkExport['bookmarks'] => {
  const { bookmarks }: BookmarkExport = JSON.parse(texts.join(''));
  return bookmarks;
};

const formatJson = (texts: string[]): Blob => new Blob(texts, { type: 'application/json' });

const formatHtml = (texts: string[]): Blob =>
  new Blob(formatNetscapeFile(parseExport(texts).filter(({ url }) => isWebUrl(url))), { type: 'text/html' });

const formatCsvFile = (texts: string[]): Blob =>
  new Blob([CSV_HEAD, ...parseExport(texts).map(formatCsv)], { type: 'text/csv' });

/** Counts the urls that the account has already. The service regards urls as the same if they are equal when parsed. */
async function countKnown(urls: Iterable<string>): Promise<number> {
  const { texts } = await ask(readExport);
  const known = new Set(parseExport(texts).map(({ url }) => parseWebUrl(url)?.href));
  const parsed = new Set([...urls].map((url) => parseWebUrl(url)?.href));
  return [...parsed].filter((url) => url !== undefined && known.has(url)).length;
}

const describe = (error: unknown): Fault =>
  error instanceof ApiError
    ? { code: error.code, message: error.message }
    : { code: 'INTERNAL', message: String(error) };

/** Executes an order of the page. Reports the error if the order fails. */
async function execute(order: Order): Promise<void> {
  try {
    if (order.kind === 'read') await read(order.file, order.foldersAsTags, order.hasBookmarks);
    else if (order.kind === 'import') await importEntries(order.mode);
    else if (order.kind === 'export') await exportAll(order.format);
    else onSignedIn(order.isSignedIn);
  } catch (error) {
    if (error instanceof UnreadableFile) send({ kind: 'unreadable', message: error.message });
    else send({ kind: 'fault', fault: describe(error) });
  }
}

addEventListener('message', ({ data }: MessageEvent<Order>) => void execute(data));
