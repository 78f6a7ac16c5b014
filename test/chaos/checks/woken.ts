import type { AnyCall, Fault, Follower, Mirror } from '../journal.ts';
import { append, type Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * A held poll must return a change within this time after the end of the call that made the change, unless a fault is
 * active or has just ended. Usually, the poll returns the change after milliseconds. On an overloaded machine, it
 * returns the change after seconds. If the notification is lost, it returns the change after up to 29 s.
 */
const WAKE_PROMISE_MS = 8_000;

/** How long the effect of a fault lasts after its end, while connections are reopened and queues are drained. */
const AFTERMATH_MS = 4_000;

/**
 * A change that a poll returned. The service already held the poll when a client sent the call that made the change. So
 * only a notification could end the poll early.
 */
interface Wake {
  call: AnyCall;
  /** The first words of a finding: who received what. */
  text: string;
  atMs: number;
}

/**
 * Checks that each poll that was held during a write returned the change in time. Skips writes during or just after a
 * fault.
 */
export function checkWoken({ evidence }: Story): Result {
  const { calls, followers, mirrors, faults } = evidence.journal;
  const done = calls.filter(({ outcome }) => outcome === 'done');
  const findings: string[] = [];
  const measure = (wakes: Iterable<Wake>): number[] => {
    const delays: number[] = [];
    for (const { call, text, atMs } of wakes) {
      if (!isCalm(faults, call, Math.min(atMs, call.endMs + WAKE_PROMISE_MS))) continue;
      const delayMs = atMs - call.endMs;
      delays.push(delayMs);
      if (delayMs > WAKE_PROMISE_MS) findings.push(`${text} ${Math.round(delayMs)} ms late`);
    }
    return delays.sort((a, b) => a - b);
  };
  const ofFollowers = measure(listWakes(done, followers));
  const ofMirrors = measure(listMirrorWakes(done, mirrors));
  return {
    point: 'woken',
    counts: {
      wakes: ofFollowers.length,
      'median ms': pick(ofFollowers, 0.5),
      'p99 ms': pick(ofFollowers, 0.99),
      'of mirrors': ofMirrors.length,
      'median ms there': pick(ofMirrors, 0.5),
      'p99 ms there': pick(ofMirrors, 0.99),
    },
    findings,
  };
}

const isCalm = (faults: readonly Fault[], { sentMs }: AnyCall, untilMs: number): boolean =>
  !faults.some(({ startMs, endMs }) => startMs < untilMs && endMs + AFTERMATH_MS > sentMs);

const pick = (sorted: readonly number[], share: number): number =>
  Math.max(0, Math.round(sorted[Math.floor(sorted.length * share)] ?? 0));

function* listWakes(calls: readonly AnyCall[], followers: readonly Follower[]): Generator<Wake> {
  const byUser = groupByUser(followers);
  const receiptsOf = new Map(followers.map((each) => [each, new Map(each.receipts.map((r) => [r.id, r]))]));
  for (const call of calls) {
    if (call.kind !== 'add') continue;
    for (const follower of byUser.get(call.user) ?? []) {
      const receipt = receiptsOf.get(follower)!.get(call.id!);
      if (receipt === undefined || receipt.askedMs > call.sentMs) continue;
      yield { call, text: `${follower.name} received ${call.id}`, atMs: receipt.atMs };
    }
  }
}

/**
 * Yields the adds, edits, deletions and renamed tags that a mirror received from a held poll. A unique text identifies
 * each change.
 */
function* listMirrorWakes(calls: readonly AnyCall[], mirrors: readonly Mirror[]): Generator<Wake> {
  const byUser = groupByUser(mirrors);
  const receiptsOf = new Map(mirrors.map((each) => [each, indexReceipts(each)]));
  for (const call of calls) {
    for (const change of listChanges(call)) {
      for (const mirror of byUser.get(call.user) ?? []) {
        const receipt = receiptsOf.get(mirror)!.get(change);
        if (receipt === undefined || receipt.askedMs > call.sentMs) continue;
        yield { call, text: `${mirror.name} got "${change}"`, atMs: receipt.atMs };
      }
    }
  }
}

function listChanges(call: AnyCall): string[] {
  if (call.kind === 'delete') return call.ids.map((id) => `deleted ${id}`);
  if (call.kind === 'tag') return call.operation === 'rename' ? [`tag ${call.name}`] : [];
  const title = call.kind === 'add' || call.kind === 'edit' ? call.title : undefined;
  return title === undefined ? [] : [`title ${title}`];
}

/** Returns the first receipt of each change. */
function indexReceipts({ receipts }: Mirror): Map<string, Mirror['receipts'][number]> {
  return new Map(receipts.toReversed().map((receipt) => [receipt.change, receipt]));
}

function groupByUser<T extends { user: number }>(all: readonly T[]): Map<number, T[]> {
  const byUser = new Map<number, T[]>();
  for (const each of all) append(byUser, each.user, each);
  return byUser;
}
