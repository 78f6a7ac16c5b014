import { EndpointClient } from '../../client/client.ts';
import { ApiError } from '../../client/errors.ts';
import type { Bookmark, ImportEntry } from '../../domain/resources.ts';
import { UnreadableFile } from '../../formats/entry.ts';
import { readBookmarkFile } from '../../formats/read-file.ts';
import { formatNetscapeFile, isWebUrl } from '../../formats/write-netscape.ts';
import type { Fault, Order, Outcome, Report } from './transfer.ts';

/**
 * Runs as a worker with the session of the page: reads a file of bookmarks, imports it, exports all. The entries stay
 * here, and the page gets only counts.
 */

/** The part of a worker's global object that this file uses. TypeScript's types of documents and workers exclude each other. */
interface WorkerScope {
  postMessage(report: Report): void;
  onmessage: ((event: MessageEvent<Order>) => void) | null;
  location: { origin: string };
}

const scope = globalThis as unknown as WorkerScope;
const client = new EndpointClient({ baseUrl: `${scope.location.origin}/web/api/v1` });

/**
 * A merge is sent in batches, so that its progress can be shown. Each batch is a transaction of its own, and sending
 * one twice does no harm. 100,000 entries take less than half the quota of a minute.
 */
const PART_ENTRIES = 2_500;

/** About the largest body that the service does not queue, in characters. */
const PART_LENGTH = 900_000;

let entries: ImportEntry[] = [];
let onSignedIn: (isSignedIn: boolean) => void = () => {};

/** Makes a call. If the session has ended, waits until the reader has signed in on the page, and calls again. */
async function ask<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'INVALID_TOKEN') throw error;
      const signedIn = new Promise<boolean>((resolve) => {
        onSignedIn = resolve;
      });
      scope.postMessage({ kind: 'signed-out' });
      if (!(await signedIn)) throw error;
    }
  }
}

async function read(file: File, foldersAsTags: boolean): Promise<void> {
  const parsed = readBookmarkFile(new Uint8Array(await file.arrayBuffer()), { foldersAsTags });
  entries = parsed.entries;
  const names = entries.flatMap((entry) => (Array.isArray(entry?.tags) ? entry.tags : []));
  const tags = new Set(names.map((tag) => (typeof tag === 'string' ? tag : String(tag?.name)).toLowerCase()));
  scope.postMessage({
    kind: 'preview',
    preview: {
      format: parsed.format,
      count: entries.length,
      addresses: new Set(entries.map((entry) => entry?.url)).size - parsed.refusals.length,
      combined: parsed.combined,
      leftOut: parsed.leftOut,
      refused: parsed.refusals,
      tags: tags.size,
      folders: parsed.folders,
      first: entries
        .slice(0, 5)
        .map((entry) => ({ url: String(entry?.url ?? ''), title: String(entry?.title ?? '') })),
    },
  });
}

/** The batches of entries, each with the index of its first entry. */
function* parts(): Generator<[number, ImportEntry[]]> {
  let part: ImportEntry[] = [];
  let length = 0;
  for (const [index, entry] of entries.entries()) {
    const entryLength = JSON.stringify(entry).length;
    if (part.length > 0 && (part.length === PART_ENTRIES || length + entryLength > PART_LENGTH)) {
      yield [index - part.length, part];
      part = [];
      length = 0;
    }
    part.push(entry);
    length += entryLength;
  }
  if (part.length > 0) yield [entries.length - part.length, part];
}

/** Imports the entries. If a batch fails, the report covers the batches before it. */
async function importEntries(mode: 'merge' | 'replace'): Promise<void> {
  const outcome: Outcome = { imported: 0, skipped: 0, errors: [] };
  try {
    const all: Iterable<[number, ImportEntry[]]> = mode === 'replace' ? [[0, entries]] : parts();
    for (const [start, bookmarks] of all) {
      const result = await ask(() => client.importBookmarks({ bookmarks, mode }));
      outcome.imported += result.imported;
      outcome.skipped += result.skipped;
      outcome.errors.push(...result.errors.map((error) => ({ ...error, index: error.index + start })));
      scope.postMessage({ kind: 'progress', done: start + bookmarks.length });
    }
    scope.postMessage({ kind: 'outcome', outcome });
  } catch (error) {
    scope.postMessage({ kind: 'outcome', outcome, fault: describe(error) });
  }
}

/** Occurs once in each bookmark: inside a text, its quotes have backslashes. */
const MARK = '"created_at":"';

async function exportAll(format: 'json' | 'html'): Promise<void> {
  const pieces: BlobPart[] = [];
  const decoder = new TextDecoder();
  let count = 0;
  let tail = '';
  for await (const chunk of await ask(startExport)) {
    pieces.push(chunk as Uint8Array<ArrayBuffer>);
    const text = tail + decoder.decode(chunk, { stream: true });
    const found = text.split(MARK);
    count += found.length - 1;
    tail = found.at(-1)!.slice(-MARK.length + 1);
    scope.postMessage({ kind: 'progress', done: count });
  }
  const json = new Blob(pieces, { type: 'application/json' });
  scope.postMessage({ kind: 'file', file: format === 'json' ? json : toHtml(await json.text()), count });
}

/** Resolves with the stream once its first chunk has arrived. Before that, the session may turn out to have ended. */
async function startExport(): Promise<AsyncIterable<Uint8Array>> {
  const stream = client.exportStream();
  const first = await stream.next();
  return (async function* () {
    if (!first.done) yield first.value;
    yield* stream;
  })();
}

function toHtml(json: string): Blob {
  const { bookmarks } = JSON.parse(json) as { bookmarks: Bookmark[] };
  return new Blob(formatNetscapeFile(bookmarks.filter(({ url }) => isWebUrl(url))), { type: 'text/html' });
}

const describe = (error: unknown): Fault =>
  error instanceof ApiError
    ? { code: error.code, message: error.message }
    : { code: 'INTERNAL', message: String(error) };

async function follow(order: Order): Promise<void> {
  try {
    if (order.kind === 'read') await read(order.file, order.foldersAsTags);
    else if (order.kind === 'import') await importEntries(order.mode);
    else if (order.kind === 'export') await exportAll(order.format);
    else onSignedIn(order.isSignedIn);
  } catch (error) {
    if (error instanceof UnreadableFile) scope.postMessage({ kind: 'unreadable', message: error.message });
    else scope.postMessage({ kind: 'fault', fault: describe(error) });
  }
}

scope.onmessage = ({ data }) => void follow(data);
