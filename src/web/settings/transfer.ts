import type { ImportEntry, ImportError } from '../../domain/resources.ts';
import type { Change, Format, LeftOut, ParsedFile } from '../../formats/entry.ts';
import { scriptAddress } from '../script-address.ts';
import { ask, client } from '../session.ts';

/** The messages between the page and the worker. The worker reads files, imports bookmarks and exports bookmarks. */

/** What the worker reports about a file before it imports the file. */
export interface Preview {
  format: Format;
  count: number;
  /** The number of different addresses that the service will accept. */
  addresses: number;
  /** The number of duplicates in the file, which are combined. */
  combined: number;
  /** Entries that are not imported. */
  leftOut: LeftOut[];
  /** What differs from the file in entries that are imported. */
  changes: Change[];
  /** The columns or fields of the file that are not read. */
  unknownFields: string[];
  /** The encoding of the file, if it was guessed. */
  guessedEncoding: string | undefined;
  /** Entries that the service will refuse. */
  refused: { url: string | null; error: string }[];
  tags: number;
  /** The folders that become tags. */
  folders: ParsedFile['folders'];
  first: Pick<ImportEntry, 'url' | 'title'>[];
}

export interface Outcome {
  imported: number;
  skipped: number;
  errors: Pick<ImportError, 'url' | 'error'>[];
}

/** An error of the API in a form that can be sent between threads. */
export interface Fault {
  code: string;
  message: string;
}

export type Order =
  /** With `hasBookmarks`, the worker also compares the file with the bookmarks of the account. */
  | { kind: 'read'; file: File; foldersAsTags: boolean; hasBookmarks: boolean }
  | { kind: 'import'; mode: 'merge' | 'replace' }
  | { kind: 'export'; format: 'json' | 'html' | 'csv' }
  | { kind: 'signed-in'; isSignedIn: boolean };

export type Report =
  | { kind: 'preview'; preview: Preview }
  /** How many of the file's addresses the account has already. */
  | { kind: 'known'; count: number }
  | { kind: 'unreadable'; message: string }
  | { kind: 'progress'; done: number }
  | { kind: 'outcome'; outcome: Outcome; fault?: Fault | undefined }
  | { kind: 'file'; file: Blob; count: number }
  | { kind: 'fault'; fault: Fault }
  /** The session has ended. The worker waits until the user has signed in again. */
  | { kind: 'signed-out' };

export interface Transfer {
  send(order: Order): void;
  end(): void;
}

/** Starts the worker. `onReport` gets all messages of the worker except `signed-out`, which this function handles. */
export function startTransfer(onReport: (report: Report) => void): Transfer {
  const { href } = new URL('./transfer-worker.ts', import.meta.url);
  const worker = new Worker(scriptAddress(href), { type: 'module' });
  const send = (order: Order) => worker.postMessage(order);
  const settleSession = async () => {
    const isSignedIn = await ask(() => client.profile()).then(
      () => true,
      () => false,
    );
    send({ kind: 'signed-in', isSignedIn });
  };
  worker.onmessage = ({ data }: MessageEvent<Report>) => {
    if (data.kind === 'signed-out') void settleSession();
    else onReport(data);
  };
  worker.onerror = () => onReport({ kind: 'fault', fault: { code: 'INTERNAL', message: '' } });
  return { send, end: () => worker.terminate() };
}
