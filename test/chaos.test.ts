import { describe, expect, test, vi } from 'vitest';
import { checkAll, checkPoint } from './chaos/checks/check.ts';
import { isSound, type Point } from './chaos/checks/findings.ts';
import type { AddCall, DeleteCall, Evidence, ImportCall } from './chaos/journal.ts';
import {
  withDuplicatedJobs,
  withoutChangeRow,
  withoutGenerations,
  withoutUserLock,
  withoutWakes,
  withoutWakesOfChanges,
  withTruncatedExports,
  withUnlockedNumbers,
} from './chaos/mutations.ts';
import { formatFindings, formatTable } from './chaos/report.ts';
import { DEFAULTS, type Mutation, type RunOptions, runChaos } from './chaos/run.ts';
import { sampleEvidence } from './chaos/sample-evidence.ts';

// A short run of `npm run test:chaos`, and that its checks would notice: each mutation breaks a fleet of its own.

const LIMIT_MS = 180_000;

// Each fleet is some ten processes: with more at a time none would get to what it has to show.
vi.setConfig({ maxConcurrency: 3 });

const SMALL: RunOptions = {
  ...DEFAULTS,
  seed: 1,
  fleet: { apis: 2, workers: 1 },
  users: 4,
  writersPerUser: 4,
  followersPerUser: 3,
  mirrorsPerUser: 1,
  pauseMs: 700,
  syncWaitSeconds: 12,
  log: () => {},
};

test(
  'nothing is lost, doubled or missed while processes, connections, Postgres and Redis come and go',
  async () => {
    const options = { ...SMALL, seconds: 12, fleet: DEFAULTS.fleet, users: 10, pauseMs: 2_000 };
    const { results, evidence } = await runChaos(options);
    expect(formatFindings(results), formatTable(results)).toBe('');
    expect(evidence.journal.faults.length).toBeGreaterThan(2);
  },
  LIMIT_MS,
);

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
  const options = { ...SMALL, withFaults: false, seconds: 90, isEnough, ...more, mutation };
  const { evidence } = await runChaos(options);
  expect(listFound(evidence)).not.toEqual([]);
}

describe.concurrent('the checks of a run find', { timeout: LIMIT_MS }, () => {
  test('wakes off, by followers that got late what was added', () =>
    expectFound(withoutWakes, 'woken', /late/, {
      users: 8,
      writersPerUser: 1,
      pauseMs: 500,
      syncWaitSeconds: 10,
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
    expectFound(withoutWakesOfChanges, 'woken', /mirror .* got .* late/, {
      fleet: { apis: 3, workers: 1 },
      users: 8,
      writersPerUser: 1,
      pauseMs: 2_000,
      syncWaitSeconds: 29,
    }));

  test('a truncated export, by what it lacks', () =>
    expectFound(withTruncatedExports, 'looked', /lacks/, { users: 3, readerPauseMs: 1_000 }));
});

describe('of evidence made by hand', () => {
  const first = ({ journal }: Evidence) => journal.calls[0] as AddCall;
  const theImport = ({ journal }: Evidence) => journal.calls[2] as ImportCall;

  test('what is sound is found sound', () => {
    const results = checkAll(sampleEvidence());
    expect(formatFindings(results)).toBe('');
    expect(isSound(results)).toBe(true);
  });

  const SPOILT: [string, Point, RegExp, (evidence: Evidence) => void][] = [
    ['a lost bookmark', 'added', /4 .* is lost/, ({ rest }) => rest.rows.pop()],
    [
      'other content',
      'added',
      /another title/,
      ({ rest }) => Object.assign(rest.rows[0]!, { title: 'other' }),
    ],
    ['a lost tag', 'added', /another lasting tags/, ({ rest }) => Object.assign(rest.rows[0]!, { tags: [] })],
    [
      'what was replaced is still there',
      'added',
      /1 was replaced and is there/,
      ({ rest }) => rest.rows.unshift({ ...rest.rows[0]!, id: 1, url: 'http://a/', title: 'title 1' }),
    ],
    [
      'what was deleted is still there',
      'added',
      /4 was deleted and is there/,
      ({ journal }) => {
        const { user, outcome, code, attempts } = journal.calls[0]!;
        const call: DeleteCall = {
          kind: 'delete',
          ids: [4],
          sentMs: 90,
          endMs: 95,
          user,
          outcome,
          code,
          attempts,
        };
        journal.calls.push(call);
      },
    ],
    [
      'a missed bookmark',
      'followed',
      /never got 3/,
      ({ journal }) => journal.followers[0]!.receipts.splice(2, 1),
    ],
    [
      'a bookmark twice',
      'followed',
      /got 4 twice/,
      ({ journal: { followers } }) => followers[0]!.receipts.push(followers[0]!.receipts[3]!),
    ],
    [
      'a bookmark that a mirror lacks',
      'mirrored',
      /mirror: bookmark 3 is missing/,
      ({ journal }) => journal.mirrors[0]!.copy!.bookmarks.shift(),
    ],
    [
      'a bookmark that a mirror should have removed',
      'mirrored',
      /mirror: bookmark 3 is held and gone/,
      ({ rest }) => rest.collections.get(1)!.bookmarks.shift(),
    ],
    [
      'a tag that a mirror knows by its old name',
      'mirrored',
      /mirror: tag 1 has another name: "old", not "lasting-a"/,
      ({ journal }) => Object.assign(journal.mirrors[0]!.copy!.tags[0]!, { name: 'old' }),
    ],
    [
      'a time that a mirror has otherwise',
      'mirrored',
      /mirror: bookmark 4 has another updated_at/,
      ({ journal }) => Object.assign(journal.mirrors[0]!.copy!.bookmarks[1]!, { updated_at: '' }),
    ],
    [
      'a mirror that is in another order',
      'mirrored',
      /mirror: bookmarks are out of order/,
      ({ journal }) => journal.mirrors[0]!.copy!.bookmarks.reverse(),
    ],
    [
      'a mirror of a user that has nothing any more',
      'mirrored',
      /mirror: tag 1 is held and gone/,
      ({ rest }) => rest.collections.clear(),
    ],
    [
      'a mirror that could not catch up',
      'mirrored',
      /mirror could not catch up/,
      ({ journal }) => Object.assign(journal.mirrors[0]!, { copy: undefined }),
    ],
    [
      'a mirror that is woken late',
      'woken',
      /mirror got "title title 2" 8970 ms late/,
      ({ journal }) => Object.assign(journal.mirrors[0]!.receipts[1]!, { atMs: 9_000, askedMs: -1 }),
    ],
    [
      'a poll of changes that hangs',
      'answered',
      /bookmarks.changes hung/,
      ({ journal }) => Object.assign(journal.attempts[0]!, { path: '/bookmarks/changes', endMs: 60_000 }),
    ],
    [
      'what was deleted before it was asked for',
      'looked',
      /holds 3, which was deleted before/,
      ({ journal }) => {
        const { user, outcome, code, attempts } = journal.calls[0]!;
        const call = {
          kind: 'delete',
          ids: [3],
          sentMs: 71,
          endMs: 75,
          user,
          outcome,
          code,
          attempts,
        } as const;
        journal.calls.push({ ...call, ids: [3] });
      },
    ],
    [
      'another order',
      'followed',
      /got 1 after 2/,
      ({ journal: { followers } }) =>
        followers[0]!.receipts.splice(0, 2, ...followers[0]!.receipts.slice(0, 2).reverse()),
    ],
    [
      'a late wake',
      'woken',
      /told of 1 8990 ms late/,
      ({ journal }) => {
        for (const receipt of journal.followers[0]!.receipts)
          Object.assign(receipt, { atMs: 9_000, askedMs: -1 });
      },
    ],
    ['what nobody asked for', 'asked', /nobody asked for 1/, ({ journal }) => journal.calls.shift()],
    [
      'what was refused',
      'asked',
      /add was refused: UNAVAILABLE/,
      (evidence) => Object.assign(first(evidence), { outcome: 'refused', code: 'UNAVAILABLE' }),
    ],
    [
      'an add that happened twice',
      'asked',
      /came to be 2 times: 1, 5/,
      ({ journal: { followers } }) =>
        followers[0]!.receipts.push({ id: 5, url: 'http://a/', atMs: 90, askedMs: 80 }),
    ],
    [
      'half an import',
      'imported',
      /2 of 3 entries/,
      (evidence) => theImport(evidence).entries.push({ url: 'http://e/', title: '', comment: '', tags: [] }),
    ],
    [
      'an import that does not add up',
      'imported',
      /2 sent/,
      (evidence) => Object.assign(theImport(evidence).result!, { imported: 1 }),
    ],
    [
      'a mixture',
      'looked',
      /holds 2 from before a replace/,
      ({ journal }) => {
        Object.assign(journal.looks[1]!, { count: 3 });
        journal.looks[1]!.ids.unshift(2);
        journal.looks[1]!.urls.unshift('http://b/');
      },
    ],
    [
      'a short response',
      'looked',
      /lacks 4/,
      ({ journal: { looks } }) => Object.assign(looks[1]!, { ids: [3], count: 1 }),
    ],
    [
      'a wrong count',
      'looked',
      /says 3 and holds 2/,
      ({ journal }) => Object.assign(journal.looks[1]!, { count: 3 }),
    ],
    [
      'more than the cap',
      'capped',
      /holds 2/,
      (evidence) => Object.assign(evidence.limits, { bookmarks: 1 }),
    ],
    [
      'more than the limit',
      'limited',
      /4 requests of one token/,
      ({ journal: { attempts } }) => attempts.push({ ...attempts[2]!, sentMs: 990, endMs: 999 }),
    ],
    [
      'more than the limit of one replica while Redis is away',
      'limited',
      /api-1 admitted 4 requests of one token in 1 lives/,
      ({ journal: { attempts, lives } }) => {
        attempts.push({ ...attempts[2]!, sentMs: 990, endMs: 999 });
        lives[0]!.fallbacks.push({ startMs: 0, endMs: 1_000 });
      },
    ],
    [
      'a 500',
      'answered',
      /answered 500/,
      ({ journal }) => Object.assign(journal.attempts[0]!, { status: 500 }),
    ],
    [
      'what hangs',
      'answered',
      /hung/,
      ({ journal }) => Object.assign(journal.attempts[0]!, { endMs: 60_000 }),
    ],
    [
      'a process that ended by itself',
      'lived',
      /ended with 1 by itself/,
      ({ journal }) => Object.assign(journal.lives[0]!, { endedBy: undefined, end: 1 }),
    ],
    [
      'a process that did not end in order',
      'lived',
      /ended with SIGKILL after SIGTERM/,
      ({ journal }) => Object.assign(journal.lives[0]!, { end: 'SIGKILL' }),
    ],
    ['what is left', 'rested', /a waiter/, ({ rest }) => rest.leftovers.push('a waiter')],
  ];

  test.each(SPOILT)('%s is found', (_name, point, text, spoil) => {
    const evidence = sampleEvidence();
    spoil(evidence);
    const found = checkAll(evidence).find((result) => result.point === point)!.findings;
    expect(found).toContainEqual(expect.stringMatching(text));
  });
});
