import type { ImportCall, Look } from '../journal.ts';
import type { Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks every response that contains a whole collection, and the contents of every mirror. None of them may mix
 * bookmarks from before a replace with bookmarks from after it. None may contain a bookmark whose deletion was
 * acknowledged before the request, or lack a bookmark that existed during the whole request. Each must be in order and
 * state the right count.
 */
export function checkLooked(story: Story): Result {
  const { looks } = story.evidence.journal;
  const deletedMs = listDeleted(story);
  const findings = looks.flatMap((look) => [
    ...findDisorder(look),
    ...findMixedReplaces(story, look),
    ...findMissing(story, look),
    ...findDeleted(deletedMs, look),
  ]);
  const count = (source: Look['source']) => looks.filter((look) => look.source === source).length;
  const counts = {
    exports: count('export'),
    lists: count('list'),
    'contents of mirrors': count('mirror'),
    'bookmarks in them': looks.reduce((sum, { ids }) => sum + ids.length, 0),
  };
  return { point: 'looked', counts, findings };
}

const nameLook = ({ source, user, sentMs }: Look): string => `${source} of ${user} at ${Math.round(sentMs)}`;

function findDisorder(look: Look): string[] {
  const { ids, count } = look;
  if (count !== ids.length) return [`${nameLook(look)} says ${count} and holds ${ids.length}`];
  return ids.every((id, n) => n === 0 || id > ids[n - 1]!) ? [] : [`${nameLook(look)} is out of order`];
}

function findMixedReplaces(story: Story, look: Look): string[] {
  const origins = look.urls.map((url) => story.callByUrl.get(url)?.call);
  const lastPlace = new Map<ImportCall, number>();
  for (const [n, call] of origins.entries()) {
    if (call?.kind === 'import' && call.mode === 'replace') lastPlace.set(call, n);
  }
  return [...lastPlace].flatMap(([replace, last]) => {
    const older = look.ids.filter((_id, n) => n < last && origins[n] !== replace);
    return older.length === 0
      ? []
      : [`${nameLook(look)} holds ${older.join(', ')} from before a replace with its ${look.ids[last]}`];
  });
}

function findMissing(story: Story, look: Look): string[] {
  const held = new Set(look.ids);
  return (story.birthsByUser.get(look.user) ?? [])
    .filter(
      ({ id, knownByMs, goneFromMs }) => knownByMs < look.sentMs && goneFromMs > look.endMs && !held.has(id),
    )
    .map(({ id }) => `${nameLook(look)} lacks ${id}`);
}

/** Returns, by bookmark id, when the first deletion of the bookmark was acknowledged. */
function listDeleted({ evidence }: Story): Map<number, number> {
  const deletedMs = new Map<number, number>();
  for (const call of evidence.journal.calls) {
    if (call.kind !== 'delete' || call.outcome !== 'done') continue;
    for (const id of call.ids) deletedMs.set(id, Math.min(deletedMs.get(id) ?? call.endMs, call.endMs));
  }
  return deletedMs;
}

const findDeleted = (deletedMs: ReadonlyMap<number, number>, look: Look): string[] =>
  look.ids
    .filter((id) => (deletedMs.get(id) ?? Number.POSITIVE_INFINITY) < look.sentMs)
    .map((id) => `${nameLook(look)} holds ${id}, which was deleted before`);
