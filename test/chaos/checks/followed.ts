import type { Follower, Receipt } from '../journal.ts';
import type { Birth, Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks that every follower received each bookmark of its user once, in the order of ids, despite all faults. A
 * follower may lack a bookmark that was possibly removed before the follower received a later one.
 */
export function checkFollowed(story: Story): Result {
  const { followers } = story.evidence.journal;
  const findings = [...story.evidence.rest.behind];
  let receipts = 0;
  let restarts = 0;
  let excused = 0;
  for (const follower of followers) {
    receipts += follower.receipts.length;
    restarts += follower.restarts;
    findings.push(...findDisorder(follower));
    const missed = listMissed(follower, story.birthsByUser.get(follower.user) ?? []);
    const unexcused = missed.filter(({ id, goneFromMs }) => !(goneFromMs < passedMs(follower.receipts, id)));
    excused += missed.length - unexcused.length;
    findings.push(...unexcused.map((birth) => describeMissed(follower, birth)));
  }
  return {
    point: 'followed',
    counts: { followers: followers.length, receipts, restarts, 'removed before they were read': excused },
    findings,
  };
}

/**
 * Describes a bookmark that a follower lacks. If the follower already has a later bookmark, it will never receive the
 * missing one.
 */
function describeMissed({ name, receipts }: Follower, { id, url }: Birth): string {
  const isPassed = passedMs(receipts, id) < Number.POSITIVE_INFINITY;
  return `${name} never got ${id} (${url})${isPassed ? ', but a later one' : ''}`;
}

function findDisorder({ name, receipts }: Follower): string[] {
  return receipts.flatMap(({ id }, n) => {
    const before = receipts[n - 1]?.id ?? 0;
    if (id > before) return [];
    return [`${name} got ${id} ${id === before ? 'twice' : `after ${before}`}`];
  });
}

function listMissed({ receipts }: Follower, births: readonly Birth[]): Birth[] {
  const got = new Set(receipts.map(({ id }) => id));
  return births.filter(({ id }) => !got.has(id));
}

/** Returns when a follower first received a bookmark with an id above `id`. Infinite if the follower never did. */
function passedMs(receipts: readonly Receipt[], id: number): number {
  let [low, high] = [0, receipts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (receipts[middle]!.id > id) high = middle;
    else low = middle + 1;
  }
  return receipts[low]?.atMs ?? Number.POSITIVE_INFINITY;
}
