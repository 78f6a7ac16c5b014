import type { AddCall, Fault, Follower } from '../journal.ts';
import { append, type Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * A held poll sees what another replica committed within this time, while nothing is or was lately hurt. Mostly it takes
 * milliseconds; a machine with more to do than it can takes seconds, and without a wake it would be up to 29.
 */
export const WAKE_PROMISE_MS = 8_000;

/** How long a fault is felt: connections are made anew, queues run empty. */
const AFTERMATH_MS = 4_000;

/** Polls that were held when a bookmark was added, while all was calm, brought it in time. */
export function checkWoken({ evidence }: Story): Result {
  const { calls, followers, faults } = evidence.journal;
  const byUser = new Map<number, Follower[]>();
  for (const follower of followers) append(byUser, follower.user, follower);
  const receiptsOf = new Map(followers.map((each) => [each, new Map(each.receipts.map((r) => [r.id, r]))]));
  const findings: string[] = [];
  const delays: number[] = [];
  for (const add of calls) {
    if (add.kind !== 'add' || add.outcome !== 'done') continue;
    for (const follower of byUser.get(add.user) ?? []) {
      const receipt = receiptsOf.get(follower)!.get(add.id!);
      // Held before the add was sent, so that nothing but a wake can end the poll early.
      if (receipt === undefined || receipt.askedMs > add.sentMs) continue;
      const delayMs = receipt.atMs - add.endMs;
      if (!isCalm(faults, add, Math.min(receipt.atMs, add.endMs + WAKE_PROMISE_MS))) continue;
      delays.push(delayMs);
      if (delayMs > WAKE_PROMISE_MS)
        findings.push(`${follower.name} was told of ${add.id} ${Math.round(delayMs)} ms late`);
    }
  }
  return { point: 'woken', counts: describeDelays(delays), findings };
}

const isCalm = (faults: readonly Fault[], { sentMs }: AddCall, untilMs: number): boolean =>
  !faults.some(({ startMs, endMs }) => startMs < untilMs && endMs + AFTERMATH_MS > sentMs);

function describeDelays(delays: number[]): Record<string, number> {
  const sorted = delays.sort((a, b) => a - b);
  const at = (share: number) => Math.max(0, Math.round(sorted[Math.floor(sorted.length * share)] ?? 0));
  return { wakes: sorted.length, 'median ms': at(0.5), 'p99 ms': at(0.99) };
}
