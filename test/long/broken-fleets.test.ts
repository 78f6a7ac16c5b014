import { describe, expect, test, vi } from 'vitest';
import { checkPoint } from '../chaos/checks/check.ts';
import type { Point } from '../chaos/checks/findings.ts';
import type { Evidence } from '../chaos/journal.ts';
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

// That `npm run test:chaos` can fail: each mutation breaks a fleet of its own, and a check finds it.

// Each fleet is some ten processes: with more at a time none would get to what it has to show.
vi.setConfig({ maxConcurrency: 3 });

/** What a check must say so often of a broken fleet before the run ends: a single one may yet be excused. */
const ENOUGH = 3;

/**
 * Runs a broken fleet until the check finds it. What was broken shows when things happen at the wrong moment: how soon is
 * chance, so it ends when it has shown, and fails only after a time in which it cannot but show.
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
  const options = { ...SMALL_RUN, withFaults: false, seconds: 90, isEnough, ...more, mutation };
  const { evidence } = await runChaos(options);
  expect(listFound(evidence)).not.toEqual([]);
}

describe.concurrent('the checks of a run find', { timeout: 300_000 }, () => {
  // A write wakes the polls of its own replica, and an add those of mirrors too: what is late must be followed by nothing within
  // the time of a wake.
  const SELDOM = {
    fleet: { apis: 3, workers: 1 },
    users: 12,
    writersPerUser: 1,
    pauseMs: 5_000,
    syncWaitSeconds: 29,
  };

  test('wakes off, by followers that got late what was added', () =>
    expectFound(withoutWakes, 'woken', /late/, SELDOM));

  test('the comparison of versions removed, by an edit that was overwritten', () =>
    expectFound(withoutComparison, 'unseen', /was overwritten/, {
      users: 2,
      writersPerUser: 10,
      withReplaces: false,
    }));

  test('the user lock removed, by what followers never got', () =>
    expectFound(withoutUserLock, 'followed', /never got .* but a later one/, { pauseMs: 400 }));

  test('a duplicated job, by bookmarks that came to be twice', () =>
    expectFound(withDuplicatedJobs, 'asked', /came to be \d+ times/, { users: 6 }));

  const WRITTEN = { users: 6, seconds: 20 };
  // What a mirror missed stays so until the end.
  const MISSED = { ...WRITTEN, withReplaces: false };

  test('a change row that is not written, by mirrors that hold what was before', () =>
    expectFound(withoutChangeRow, 'mirrored', /has another title/, MISSED));

  test('a number drawn outside the lock, by mirrors that were past it', () =>
    expectFound(withUnlockedNumbers, 'mirrored', /has another (title|comment)/, {
      ...MISSED,
      pauseMs: 300,
    }));

  test('a replace that begins no generation, by mirrors that hold what was replaced', () =>
    expectFound(withoutGenerations, 'mirrored', /is held and gone from the database/, WRITTEN));

  test('wakes of changes off, by mirrors that got edits and deletions late', () =>
    expectFound(withoutWakesOfChanges, 'woken', /mirror .* got .* late/, SELDOM));

  test('a truncated export, by what it lacks', () =>
    expectFound(withTruncatedExports, 'looked', /lacks/, { users: 3, readerPauseMs: 1_000 }));
});
