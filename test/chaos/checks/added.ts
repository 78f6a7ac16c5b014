import type { AddCall, AnyCall, EditCall, Row } from '../journal.ts';
import { LASTING_TAGS } from '../users.ts';
import { append, effectEndMs, type Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks that every bookmark that appeared in a response is in the database, unless somebody may have removed it. A
 * bookmark that was certainly removed must not be in the database. Each row must contain the values that were written
 * last. If the times of the calls allow several orders of writes, each order is right.
 */
export function checkAdded(story: Story): Result {
  const { journal, rest } = story.evidence;
  const rows = new Map(rest.rows.map((row) => [row.id, row]));
  const findings = [...story.contradictions];
  for (const { id, url, goneFromMs } of story.births.values()) {
    if (!rows.has(id) && goneFromMs === Number.POSITIVE_INFINITY) {
      findings.push(`bookmark ${id} (${url}) is lost: nobody removed it`);
    }
  }
  findings.push(...findUnremoved(story, rows));
  const edits = new Map<number, EditCall[]>();
  for (const call of journal.calls) if (call.kind === 'edit') append(edits, call.id, call);
  for (const row of rest.rows) findings.push(...findForeignContent(story, row, edits.get(row.id) ?? []));
  const adds = journal.calls.filter((call): call is AddCall => call.kind === 'add');
  return {
    point: 'added',
    counts: {
      acknowledged: adds.filter(({ outcome }) => outcome === 'done').length,
      unknown: adds.filter(({ outcome }) => outcome === 'unknown').length,
      refused: adds.filter(({ outcome }) => outcome === 'refused').length,
      'rows at the end': rows.size,
      'removed by then': [...story.births.keys()].filter((id) => !rows.has(id)).length,
    },
    findings,
  };
}

/**
 * Finds bookmarks that exist although their deletion or replacement was acknowledged, and bookmarks that a call did not
 * find although they existed.
 */
function findUnremoved(story: Story, rows: Map<number, Row>): string[] {
  const findings: string[] = [];
  for (const call of story.evidence.journal.calls) {
    for (const id of call.kind === 'delete' ? call.ids : []) {
      if (!rows.has(id)) continue;
      if (call.outcome === 'done') findings.push(`bookmark ${id} was deleted and is there`);
      if (call.code === 'NOT_FOUND') findings.push(`bookmark ${id} was not found and is there`);
    }
    if (call.kind === 'edit' && call.code === 'NOT_FOUND' && rows.has(call.id))
      findings.push(`bookmark ${call.id} could not be edited, not found, and is there`);
  }
  for (const { id, user, call } of story.births.values()) {
    if (call === undefined || !rows.has(id) || story.repeats.has(rows.get(id)!.url)) continue;
    const wiped = (story.replaces.get(user) ?? []).some(
      (replace) => replace !== call && replace.outcome === 'done' && replace.sentMs > effectEndMs(call),
    );
    if (wiped) findings.push(`bookmark ${id} was replaced and is there`);
  }
  return findings;
}

function findForeignContent(story: Story, row: Row, edits: readonly EditCall[]): string[] {
  const origin = story.callByUrl.get(row.url);
  // Skips bookmarks that nobody requested, because another check finds them. Also skips a bookmark whose url was sent
  // again by a merge, because the merge may have created the bookmark again without a title.
  if (origin === undefined || story.repeats.has(row.url)) return [];
  const birth: Write<never> = { call: origin.call, value: undefined as never };
  const may = <T>(value: T, first: T, pick: (edit: EditCall) => T | undefined) =>
    mayBeLast(value, [
      { ...birth, value: first },
      ...edits.flatMap((call) => {
        const given = pick(call);
        return given === undefined || call.outcome === 'refused' ? [] : [{ call, value: given }];
      }),
    ]);
  const wrong = [
    !may(row.title, origin.asked.title, ({ title }) => title) && 'title',
    !may(row.comment, origin.asked.comment, ({ comment }) => comment) && 'comment',
    !may(lasting(row.tags), lasting(origin.asked.tags), ({ tags }) => tags && lasting(tags)) &&
      'lasting tags',
  ].filter(Boolean);
  return wrong.length === 0 ? [] : [`bookmark ${row.id} (${row.url}) has another ${wrong.join(', ')}`];
}

const lasting = (tags: readonly string[]): string =>
  LASTING_TAGS.filter((tag) => tags.includes(tag)).join(' ');

interface Write<T> {
  call: AnyCall;
  value: T;
}

/**
 * Returns whether a write of this value may have been the last write. A write was not the last one if an acknowledged
 * write certainly came after it.
 */
function mayBeLast<T>(value: T, writes: readonly Write<T>[]): boolean {
  return writes.some(
    (write) =>
      write.value === value &&
      !writes.some(({ call }) => call.outcome === 'done' && call.sentMs > effectEndMs(write.call)),
  );
}
