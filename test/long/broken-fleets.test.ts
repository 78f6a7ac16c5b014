import { describe, expect, test, vi } from 'vitest';
import { checkPoint } from '../chaos/checks/check.ts';
import type { Point } from '../chaos/checks/findings.ts';
import type { Evidence, Journal } from '../chaos/journal.ts';
import {
  withDuplicatedJobs,
  withoutChangeRow,
  withoutComparison,
  withoutGenerations,
  withoutUserLock,
  withoutWakes,
  withoutWakesOfChanges,
  withTruncatedExports,
  withUnlockedNumbers,
} from '../chaos/mutations.ts';
import { type Mutation, type RunOptions, runChaos } from '../chaos/run.ts';
import { SMALL_RUN } from '../chaos/small-run.ts';

// Shows that `npm run test:chaos` can fail. Each mutation breaks a fleet, and a check must find the defect.

// Each fleet has about ten processes. With more than three fleets at the same time, a defect would take too long to
// show.
vi.setConfig({ maxConcurrency: 3 });

/** A run ends after this many findings. One finding is not enough, because a later response may still explain it. */
const ENOUGH = 3;

/**
 * Runs a broken fleet until the check finds the defect. A defect shows only with unlucky timing, so the run continues
 * until there are enough findings. The test fails if the run ends without a finding. The run's time limit is long
 * enough that a finding is practically certain, even on a slow machine.
 */
async function expectFound(
  mutation: Mutation,
  point: Point,
  finding: RegExp,
  more: Partial<RunOptions> = {},
): Promise<void> {
  const listFound = (evidence: Evidence) =>
    checkPoint(evidence, point).findings.filter((text) => finding.test(text));
  const isEnough = (evidence: Evidence) => listFound(evidence).length >= ENOUGH;
  const options = { ...SMALL_RUN, withFaults: false, seconds: 240, isEnough, ...more, mutation };
  const { evidence } = await runChaos(options);
  expect(listFound(evidence)).not.toEqual([]);
}

const listReplaces = ({ calls }: Journal) =>
  calls.filter((call) => call.kind === 'import' && call.mode === 'replace' && call.outcome === 'done');

describe.concurrent('the checks of a run find', () => {
  // A write also notifies the polls of the replica that makes the write. The next write could therefore hide that a
  // notification is missing, so the pauses between writes are long.
  const SELDOM = {
    fleet: { apis: 3, workers: 1 },
    users: 12,
    writersPerUser: 1,
    pauseMs: 5_000,
    // A missing notification shows only if the poll is held for longer than `WAKE_PROMISE_MS` after the write.
    syncWaitSeconds: 29,
  };

  test('notifications off, because followers receive additions late', () =>
    expectFound(withoutWakes, 'woken', /late/, SELDOM));

  test('the comparison of versions removed, because an edit was overwritten', () =>
    expectFound(withoutComparison, 'unseen', /was overwritten/, {
      users: 2,
      writersPerUser: 10,
      withReplaces: false,
    }));

  test('the user lock removed, because followers miss bookmarks', () =>
    expectFound(withoutUserLock, 'followed', /never got .* but a later one/, { pauseMs: 400 }));

  test('a duplicated job, because bookmarks exist twice', () =>
    expectFound(withDuplicatedJobs, 'asked', /came to be \d+ times/, { users: 6 }));

  // These runs replace no collection. After a replacement, a mirror starts from scratch and so gets what it had missed.
  // A mirror is compared with the database only at the end of a run, so `isEnough` cannot end these runs early.
  const MISSED = { users: 6, seconds: 20, withReplaces: false };

  test('a missing change row, because mirrors hold old values', () =>
    expectFound(withoutChangeRow, 'mirrored', /has another title/, MISSED));

  test('a revision drawn outside the lock, because mirrors had passed it', () =>
    expectFound(withUnlockedNumbers, 'mirrored', /has another (title|comment)/, {
      ...MISSED,
      // An edit is missed only if another write of its user draws a later revision and commits first.
      users: 2,
      writersPerUser: 10,
      seconds: 80,
      pauseMs: 300,
    }));

  test('a replace without a new generation, because mirrors hold replaced bookmarks', () =>
    expectFound(withoutGenerations, 'mirrored', /is held and gone from the database/, {
      users: 6,
      isEnough: ({ journal }) => listReplaces(journal).length >= 10,
    }));

  test('notifications of changes off, because mirrors receive edits and deletions late', () =>
    expectFound(withoutWakesOfChanges, 'woken', /mirror .* got .* late/, SELDOM));

  test('a truncated export, because bookmarks are missing', () =>
    expectFound(withTruncatedExports, 'looked', /lacks/, { users: 3, readerPauseMs: 1_000 }));
});
