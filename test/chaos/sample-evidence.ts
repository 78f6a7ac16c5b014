import { makeBookmark } from '../support/bookmark-samples.ts';
import type {
  AddCall,
  Attempt,
  Collection,
  Evidence,
  Follower,
  ImportCall,
  Life,
  Look,
  Mirror,
} from './journal.ts';

/** The evidence of a short, correct run, written by hand. Each test of the checks corrupts a copy of this evidence. */

const URLS = ['http://a/', 'http://b/', 'http://c/', 'http://d/'];

const add = (id: number, sentMs: number): AddCall => ({
  kind: 'add',
  user: 1,
  ...{ sentMs, endMs: sentMs + 10, outcome: 'done', code: '', attempts: 1, isKeyed: true },
  ...{ id, url: URLS[id - 1]!, title: `title ${id}`, comment: '', tags: ['lasting-a'] },
});

const entry = (id: number) => ({
  url: URLS[id - 1]!,
  title: `title ${id}`,
  comment: '',
  tags: ['lasting-a'],
});

const replace: ImportCall = {
  kind: 'import',
  user: 1,
  ...{
    sentMs: 60,
    endMs: 70,
    outcome: 'done',
    code: '',
    attempts: 1,
    mode: 'replace',
    invalid: 0,
    repeated: [],
  },
  entries: [entry(3), entry(4)],
  result: { imported: 2, skipped: 0, errors: 0 },
  crashes: 0,
};

const follower: Follower = {
  name: 'follower',
  user: 1,
  restarts: 0,
  receipts: [1, 2, 3, 4].map((id) => ({
    id,
    url: URLS[id - 1]!,
    atMs: [12, 32, 72, 72][id - 1]!,
    askedMs: 0,
  })),
};

const tag = { id: 1, name: 'lasting-a' };

const collection: Collection = {
  bookmarks: [3, 4].map((id) => makeBookmark({ id, ...entry(id), tags: [tag] })),
  tags: [tag],
};

const mirror: Mirror = {
  name: 'mirror',
  user: 1,
  store: 'memory',
  pages: 1,
  resets: 1,
  restarts: 0,
  receipts: [1, 2].map((id) => ({ change: `title title ${id}`, atMs: [12, 32][id - 1]!, askedMs: 0 })),
  copy: structuredClone(collection),
};

const look = (sentMs: number, ids: number[]): Look => ({
  source: 'export',
  user: 1,
  ...{ sentMs, endMs: sentMs + 5, count: ids.length, ids },
  urls: ids.map((id) => URLS[id - 1]!),
});

const attempt = (sentMs: number): Attempt => ({
  token: 'token',
  path: '/tags/list',
  ...{ sentMs, endMs: sentMs + 1, status: 200, servedBy: 'api-1', isCounted: true, isAborted: false },
});

const life: Life = {
  name: 'api-1',
  ...{
    startMs: -10,
    answeredMs: -5,
    endMs: 1_000,
    endedBy: 'SIGTERM',
    end: 0,
    problems: [],
    fallbacks: [],
  },
};

/**
 * Returns a new copy of the evidence: two adds, a replace, a follower, a mirror, two exports, and requests up to the
 * limit of 3 per second.
 */
export const sampleEvidence = (): Evidence =>
  structuredClone({
    limits: { bookmarks: 3, requests: 3, windowMs: 1_000 },
    journal: {
      calls: [add(1, 0), add(2, 20), replace],
      looks: [look(40, [1, 2]), look(80, [3, 4])],
      followers: [follower],
      mirrors: [mirror],
      attempts: [0, 10, 20].map(attempt),
      faults: [],
      lives: [life],
      surprises: [],
      heldPolls: 1,
    },
    rest: {
      rows: [3, 4].map((id) => ({ id, user: 1, ...entry(id) })),
      ...{ recountFaults: [], leftovers: [], behind: [] },
      collections: new Map([[1, collection]]),
      looked: { processes: 1, gauges: 8 },
    },
  });
