import type { EditCall } from '../journal.ts';
import { append, type Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks each edit whose request names the version that the writer had read. Such an edit must not overwrite a version
 * that is newer than the named one.
 */
export function checkUnseen({ evidence }: Story): Result {
  const calls = evidence.journal.calls.filter((call): call is EditCall => call.kind === 'edit');
  const done = calls.filter(({ version }) => version !== undefined);
  const edits = new Map<number, EditCall[]>();
  for (const call of done) append(edits, call.id, call);
  const bound = done.filter(({ seen }) => seen !== undefined);
  const findings = bound.flatMap((call) => {
    const isBetween = (other: EditCall) => other.version! > call.seen! && other.version! < call.version!;
    return edits
      .get(call.id)!
      .filter(isBetween)
      .map(
        ({ version }) => `bookmark ${call.id}: the edit of ${version} was overwritten by one of ${call.seen}`,
      );
  });
  const conflicts = calls.filter(({ code }) => code === 'CONFLICT').length;
  return {
    point: 'unseen',
    counts: { 'edits of a version': bound.length, 'other edits': done.length - bound.length, conflicts },
    findings,
  };
}
