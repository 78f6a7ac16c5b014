import { describe, expect, test } from 'vitest';
import { checkAll } from './chaos/checks/check.ts';
import { isSound, type Point, type Result } from './chaos/checks/findings.ts';
import { demandMinimum, MINIMUMS } from './chaos/checks/minimums.ts';
import type { AddCall, DeleteCall, Evidence, ImportCall } from './chaos/journal.ts';
import { formatFindings, formatTable } from './chaos/report.ts';
import { sampleEvidence } from './chaos/sample-evidence.ts';

// These tests show that the checks of `npm run test:chaos` find faults in hand-made evidence.
// long/broken-fleets.test.ts shows that the checks also find the faults of a broken service.

describe('the checks of hand-made evidence', () => {
  const first = ({ journal }: Evidence) => journal.calls[0] as AddCall;
  const theImport = ({ journal }: Evidence) => journal.calls[2] as ImportCall;

  test('accept sound evidence', () => {
    expect(checkAll(sampleEvidence()).flatMap(({ findings }) => findings)).toEqual([]);
  });

  test('print "not shown" for a subject that a run has too little of, and fail the run', () => {
    const results = checkAll(sampleEvidence());
    expect(isSound(results)).toBe(false);
    expect(formatTable(results)).toMatch(/the cap is never exceeded .* not shown: fewer than 5 refused/);
    expect(formatFindings(results)).toMatch(
      /the cap is never exceeded:\n {2}not shown: fewer than 5 refused/,
    );
    for (const { point, counts } of results) {
      const minimum = MINIMUMS[point];
      expect(Object.keys(counts)).toEqual(expect.arrayContaining(Object.keys(minimum)));
      const enough: Result = { point, counts: minimum, findings: [] };
      expect(isSound([demandMinimum(enough)])).toBe(true);
      for (const [name, least] of Object.entries(minimum)) {
        const short = demandMinimum({ ...enough, counts: { ...minimum, [name]: least - 1 } });
        expect([isSound([short]), short.notShown]).toEqual([false, expect.stringContaining(name)]);
      }
    }
  });

  const SPOILT: [string, Point, RegExp, (evidence: Evidence) => void][] = [
    ['a lost bookmark', 'added', /4 .* is lost/, ({ rest }) => rest.rows.pop()],
    [
      'a bookmark with other content',
      'added',
      /another title/,
      ({ rest }) => Object.assign(rest.rows[0]!, { title: 'other' }),
    ],
    ['a lost tag', 'added', /another lasting tags/, ({ rest }) => Object.assign(rest.rows[0]!, { tags: [] })],
    [
      'a bookmark that exists after it was replaced',
      'added',
      /1 was replaced and is there/,
      ({ rest }) => rest.rows.unshift({ ...rest.rows[0]!, id: 1, url: 'http://a/', title: 'title 1' }),
    ],
    [
      'a bookmark that exists after it was deleted',
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
      'an edit that was overwritten unseen',
      'unseen',
      /bookmark 3: the edit of 2026-01-01T00:00:00.001Z was overwritten/,
      ({ journal }) => {
        const { user, outcome, code, attempts } = journal.calls[0]!;
        const call = { kind: 'edit', id: 3, user, outcome, code, attempts, sentMs: 91, endMs: 95 } as const;
        const change = { title: 'title 3', comment: undefined, tags: undefined };
        for (const ms of [1, 2])
          journal.calls.push({
            ...call,
            ...change,
            seen: '2026-01-01T00:00:00.000Z',
            version: `2026-01-01T00:00:00.00${ms}Z`,
          });
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
      'another time of a bookmark in a mirror',
      'mirrored',
      /mirror: bookmark 4 has another updated_at/,
      ({ journal }) => Object.assign(journal.mirrors[0]!.copy!.bookmarks[1]!, { updated_at: '' }),
    ],
    [
      'a mirror with another order',
      'mirrored',
      /mirror: bookmarks are out of order/,
      ({ journal }) => journal.mirrors[0]!.copy!.bookmarks.reverse(),
    ],
    [
      'a mirror that holds something of an empty account',
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
      'a mirror that is notified late',
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
      'a response with a bookmark that was deleted before the request',
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
      'bookmarks in another order',
      'followed',
      /got 1 after 2/,
      ({ journal: { followers } }) =>
        followers[0]!.receipts.splice(0, 2, ...followers[0]!.receipts.slice(0, 2).reverse()),
    ],
    [
      'a late notification',
      'woken',
      /received 1 8990 ms late/,
      ({ journal }) => {
        for (const receipt of journal.followers[0]!.receipts)
          Object.assign(receipt, { atMs: 9_000, askedMs: -1 });
      },
    ],
    [
      'a bookmark that nobody asked for',
      'asked',
      /nobody asked for 1/,
      ({ journal }) => journal.calls.shift(),
    ],
    [
      'a bookmark whose add was refused',
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
      'a response that mixes before and after a replace',
      'looked',
      /holds 2 from before a replace/,
      ({ journal }) => {
        Object.assign(journal.looks[1]!, { count: 3 });
        journal.looks[1]!.ids.unshift(2);
        journal.looks[1]!.urls.unshift('http://b/');
      },
    ],
    [
      'a response that lacks a bookmark',
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
      /api-1 admitted 7 requests of one token in 1 lives/,
      ({ journal: { attempts, lives } }) => {
        // The limit is 3. The replica may admit it on its own, and Redis may admit it too.
        for (let i = 0; i < 4; i += 1) attempts.push({ ...attempts[2]!, sentMs: 990, endMs: 999 });
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
      'a request that hangs',
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
      'a start that ended while the database was away, but for another reason',
      'lived',
      /ended with 1 by itself: TypeError/,
      ({ journal }) => {
        Object.assign(journal.lives[0]!, { answeredMs: undefined, endedBy: undefined, end: 1 });
        journal.lives[0]!.problems.push({ level: 60, text: 'TypeError: x is not a function' });
        journal.faults.push({ kind: 'kill and restart', target: 'postgres', startMs: 0, endMs: 500 });
      },
    ],
    [
      'a process that did not end in order',
      'lived',
      /ended with SIGKILL after SIGTERM/,
      ({ journal }) => Object.assign(journal.lives[0]!, { end: 'SIGKILL' }),
    ],
    ['a waiter that remains', 'rested', /a waiter/, ({ rest }) => rest.leftovers.push('a waiter')],
  ];

  test.each(SPOILT)('find this fault: %s', (_name, point, text, spoil) => {
    const evidence = sampleEvidence();
    spoil(evidence);
    const found = checkAll(evidence).find((result) => result.point === point)!.findings;
    expect(found).toContainEqual(expect.stringMatching(text));
  });
});
