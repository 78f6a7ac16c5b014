import type { ImportCall } from '../journal.ts';
import { type Story, wipedFromMs } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks that every import took effect completely or not at all, that an import that is `done` took effect, and that
 * the counts in each response add up.
 */
export function checkImported(story: Story): Result {
  const imports = story.evidence.journal.calls.filter((call): call is ImportCall => call.kind === 'import');
  const findings = imports.flatMap((call) => [...findMiscounted(call), ...findHalf(story, call)]);
  const done = imports.filter(({ outcome }) => outcome === 'done');
  const count = (outcome: string) => imports.filter((call) => call.outcome === outcome).length;
  return {
    point: 'imported',
    counts: {
      done: done.length,
      unknown: count('unknown'),
      refused: count('refused'),
      replaces: done.filter(({ mode }) => mode === 'replace').length,
      'after a crash': done.filter(({ crashes }) => crashes > 0).length,
      entries: imports.reduce((sum, { entries }) => sum + entries.length, 0),
    },
    findings,
  };
}

const nameImport = ({ mode, entries }: ImportCall): string => `${mode} of ${entries[0]!.url}`;

function findMiscounted(call: ImportCall): string[] {
  const { result, entries, repeated, invalid } = call;
  if (result === undefined) return [];
  const sum = result.imported + result.skipped + result.errors;
  const sent = entries.length + repeated.length + invalid;
  const isRight =
    sum === sent &&
    result.errors === invalid &&
    result.imported >= entries.length &&
    result.imported <= entries.length + repeated.length;
  return isRight ? [] : [`${nameImport(call)}: ${sent} sent, ${JSON.stringify(result)} answered`];
}

function findHalf(story: Story, call: ImportCall): string[] {
  const missing = call.entries.filter(({ url }) => !story.idsByUrl.has(url));
  const seen = call.entries.length - missing.length;
  if (missing.length === 0) return [];
  if (seen === 0 && call.outcome !== 'done') return [];
  // A `replace` may have removed the bookmarks of this import before anybody saw them.
  const wipedMs = wipedFromMs(story, { user: call.user, url: call.entries[0]!.url, call });
  if (wipedMs < Number.POSITIVE_INFINITY) return [];
  return [`${nameImport(call)} (${call.outcome}): ${seen} of ${call.entries.length} entries came to be`];
}
