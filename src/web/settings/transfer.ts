import type { ImportEntry, ImportError } from '../../domain/resources.ts';
import type { Format, ParsedFile } from '../../formats/entry.ts';
import { scriptAddress } from '../script-address.ts';
import { ask, client } from '../session.ts';

/** The worker that reads files, imports and exports, so that the page stays quick meanwhile, and what the two say. */

/** What a file holds, before anything is sent. */
export interface Preview {
  format: Format;
  count: number;
  /** Different addresses among the entries that the service will take. */
  addresses: number;
  /** Entries that came twice in the file, and were made one. */
  combined: number;
  /** Entries that are no web pages. */
  leftOut: { url: string; title: string }[];
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
  errors: ImportError[];
}

/** How a call of the API failed, as it can be sent between threads. */
export interface Fault {
  code: string;
  message: string;
}

export type Order =
  | { kind: 'read'; file: File; foldersAsTags: boolean }
  | { kind: 'import'; mode: 'merge' | 'replace' }
  | { kind: 'export'; format: 'json' | 'html' }
  | { kind: 'signed-in'; isSignedIn: boolean };

export type Report =
  | { kind: 'preview'; preview: Preview }
  | { kind: 'unreadable'; message: string }
  | { kind: 'progress'; done: number }
  | { kind: 'outcome'; outcome: Outcome; fault?: Fault | undefined }
  | { kind: 'file'; file: Blob; count: number }
  | { kind: 'fault'; fault: Fault }
  /** The session has ended: the worker waits until the reader has signed in again. */
  | { kind: 'signed-out' };

export interface Transfer {
  send(order: Order): void;
  end(): void;
}

/** Starts the worker; `onReport` is called with all that it says but the end of the session, which is settled here. */
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
