import type { ConflictPolicy, CopyFault, Report } from '../../client/index.ts';
import { formatCount, toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { openStore } from '../local-copy.ts';
import { openOwnClient, type Session } from '../session.ts';

/** The kinds of reports about changes that were not applied. */
const NOT_APPLIED: ReadonlySet<Report['kind']> = new Set(['gone', 'kept', 'refused']);

/**
 * Sends the offline changes in a file to the service, and brings the file up to date. Prints conflicts and refusals.
 * With `verify`, first compares the file with the service, repairs it, and prints what was wrong. Throws a `CliError` if
 * a change was not applied.
 */
export async function syncFile(
  session: Session,
  file: string,
  { onConflict, verify }: { onConflict: ConflictPolicy; verify: boolean },
): Promise<void> {
  const { terminal, signal } = session;
  const client = await openOwnClient(session);
  using store = openStore(file);
  const collection = client.collection(store, { onConflict });
  const pending = (await collection.pending()).length;
  const faults = verify ? await collection.verify({ signal }) : [];
  const reports = await collection.sync({ signal });
  const notApplied = reports.filter(({ kind }) => NOT_APPLIED.has(kind));
  const bookmarks = store.size;
  if (terminal.isJson)
    await terminal.print({ bookmarks, pending, reports, ...(verify && { faults }) }, () => '');
  else {
    for (const report of reports) await terminal.write(`${toLine(describeReport(report))}\n`);
    for (const fault of faults) await terminal.write(`${describeFault(fault)}\n`);
    const verified = verify ? `; verified, ${formatCount(faults.length, 'fault')} repaired` : '';
    await terminal.write(
      `${formatCount(bookmarks, 'bookmark')}; ${formatCount(pending, 'local change')} processed${verified}\n`,
    );
  }
  // Acknowledge the reports only after they are printed. If the process is killed before this line, the next run prints
  // them again.
  await collection.acknowledge(reports);
  if (notApplied.length === 0) return;
  throw new CliError(
    `${formatCount(notApplied.length, 'local change')} could not be applied`,
    undefined,
    'FAILED',
  );
}

function describeReport(report: Report): string {
  const { id, intent } = report;
  const subject = intent.kind === 'edit' ? `${id}` : `${id} (${intent.bookmark.url})`;
  switch (report.kind) {
    case 'refused':
      return `${subject}: not applied because the service refused it: ${report.message}`;
    case 'gone':
      return `${subject}: not applied because it was deleted elsewhere: ${describeEdit(intent)}`;
    case 'kept':
      return `${subject}: not deleted because it was changed elsewhere`;
    case 'duplicate':
      return `${subject}: its url was already saved`;
    case 'conflict': {
      const { field, mine, theirs, kept } = report.conflict;
      const quote = JSON.stringify;
      return `${subject}: ${field} was changed on both sides: here ${quote(mine)}, there ${quote(theirs)}; kept ${quote(kept)}`;
    }
  }
}

const FAULTS: Readonly<Record<CopyFault['kind'], string>> = {
  lost: 'was missing in the file',
  stale: 'was another version in the file',
  mistagged: 'had other tags in the file',
  misnamed: 'had another name in the file',
  unknown: 'was only in the file',
};

const describeFault = ({ kind, bookmark, tag }: CopyFault): string =>
  `${bookmark ?? `tag ${tag}`}: ${FAULTS[kind]}`;

/** Describes what an edit wrote, so that the user can repeat it. */
function describeEdit(intent: Report['intent']): string {
  if (intent.kind !== 'edit') return '';
  const fields = Object.entries(intent.fields).map(([name, { to }]) => `${name} ${JSON.stringify(to)}`);
  const tags = [
    ...intent.addTags.map((name) => `+${name}`),
    ...intent.removeTags.map(({ name }) => `-${name}`),
  ];
  return [...fields, ...(tags.length > 0 ? [`tags ${tags.join(' ')}`] : [])].join(', ');
}
