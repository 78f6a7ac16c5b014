import type { ConflictPolicy, Report } from '../../client/index.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openStore } from '../local-copy.ts';
import { openOwnClient, type Session } from '../session.ts';

/** Reports of these kinds are about a write that was not applied. */
const NOT_APPLIED: ReadonlySet<Report['kind']> = new Set(['gone', 'kept', 'refused']);

/**
 * Sends what was written to a file offline, and brings the file up to date. Prints what was not simply applied; fails
 * where a write was not applied at all.
 */
export async function syncFile(session: Session, file: string, onConflict: ConflictPolicy): Promise<void> {
  const { terminal, signal } = session;
  const client = await openOwnClient(session);
  using store = await openStore(file);
  const collection = client.collection(store, { onConflict });
  const pending = (await collection.pending()).length;
  const reports = await collection.sync({ signal });
  const lost = reports.filter(({ kind }) => NOT_APPLIED.has(kind));
  const bookmarks = store.size;
  if (terminal.isJson) await terminal.print({ bookmarks, pending, reports }, () => '');
  else {
    for (const report of reports) await terminal.write(`${toLine(describeReport(report))}\n`);
    await terminal.write(`${bookmarks} bookmarks; ${pending} local changes were pending\n`);
  }
  // Not before they are printed: a command that is killed in between prints them again.
  await collection.acknowledge(reports);
  if (lost.length === 0) return;
  throw new CliError(`${lost.length} local changes were not applied`, undefined, 'FAILED');
}

function describeReport({ kind, id, intent, conflict, message }: Report): string {
  const what = intent.kind === 'edit' ? `${id}` : `${id} (${intent.bookmark.url})`;
  if (kind === 'refused') return `${what}: not applied, the service refuses it: ${message}`;
  if (kind === 'gone') return `${what}: not applied, it was deleted elsewhere: ${describeEdit(intent)}`;
  if (kind === 'kept') return `${what}: not deleted, it was changed elsewhere`;
  if (kind === 'duplicate') return `${what}: its url was there already`;
  const { field, mine, theirs, kept } = conflict!;
  const quote = JSON.stringify;
  return `${what}: ${field} was changed on both sides: here ${quote(mine)}, there ${quote(theirs)}; it is ${quote(kept)} now`;
}

/** What an edit wrote, so that it can be written again. */
function describeEdit(intent: Report['intent']): string {
  if (intent.kind !== 'edit') return '';
  const fields = Object.entries(intent.fields).map(([name, { to }]) => `${name} ${JSON.stringify(to)}`);
  const tags = [
    ...intent.addTags.map((name) => `+${name}`),
    ...intent.removeTags.map(({ name }) => `-${name}`),
  ];
  return [...fields, ...(tags.length > 0 ? [`tags ${tags.join(' ')}`] : [])].join(', ');
}
