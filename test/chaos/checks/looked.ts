import type { ImportCall, Look } from '../journal.ts';
import type { Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * No response holds bookmarks from before a replace beside those of the replace; none lacks a bookmark that was there from
 * before its request to after its end; each is in order and counts what it holds.
 */
export function checkLooked(story: Story): Result {
  const { looks } = story.evidence.journal;
  const findings = looks.flatMap((look) => [
    ...findDisorder(look),
    ...findMixture(story, look),
    ...findLacking(story, look),
  ]);
  const exports = looks.filter(({ source }) => source === 'export').length;
  return { point: 'looked', counts: { exports, lists: looks.length - exports }, findings };
}

const nameLook = ({ source, user, sentMs }: Look): string => `${source} of ${user} at ${Math.round(sentMs)}`;

function findDisorder(look: Look): string[] {
  const { ids, count } = look;
  if (count !== ids.length) return [`${nameLook(look)} says ${count} and holds ${ids.length}`];
  return ids.every((id, n) => n === 0 || id > ids[n - 1]!) ? [] : [`${nameLook(look)} is out of order`];
}

function findMixture(story: Story, look: Look): string[] {
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

function findLacking(story: Story, look: Look): string[] {
  const held = new Set(look.ids);
  return (story.birthsByUser.get(look.user) ?? [])
    .filter(
      ({ id, knownByMs, goneFromMs }) => knownByMs < look.sentMs && goneFromMs > look.endMs && !held.has(id),
    )
    .map(({ id }) => `${nameLook(look)} lacks ${id}`);
}
