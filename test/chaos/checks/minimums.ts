import type { Point, Result } from './findings.ts';

/**
 * The minimum counts for each point. A run with lower counts has shown nothing about the point. The exercises
 * (`exercises.ts`, `cap-race.ts`) produce enough for most points. For the other points, the minimum is far below what a
 * run of 60 seconds produces on a busy machine.
 */
export const MINIMUMS: Record<Point, Record<string, number>> = {
  added: { acknowledged: 100, 'rows at the end': 100, 'removed by then': 10 },
  followed: { receipts: 500, restarts: 20 },
  mirrored: { pages: 50, resets: 5, restarts: 10, bookmarks: 100, tags: 10 },
  unseen: { 'edits of a version': 10, conflicts: 10 },
  woken: { wakes: 20, 'of mirrors': 5 },
  asked: { shown: 100, 'done when sent again': 1 },
  imported: { done: 10, replaces: 1, 'after a crash': 1, entries: 100 },
  looked: { exports: 5, lists: 5, 'contents of mirrors': 5, 'bookmarks in them': 500 },
  capped: { refused: 5, 'looks at the cap': 1 },
  limited: { 'undisturbed and used up': 1, refused: 50 },
  answered: { '200': 1_000, batches: 10 },
  lived: { faults: 5, killed: 2, 'ended in order': 1, warnings: 1 },
  rested: { processes: 1, gauges: 8, 'polls held before': 20 },
};

/** Marks the result as "not shown" if the run produced too little evidence. */
export function demandMinimum(result: Result): Result {
  const missing = Object.entries(MINIMUMS[result.point])
    .filter(([name, minimum]) => (result.counts[name] ?? 0) < minimum)
    .map(([name, minimum]) => `fewer than ${minimum.toLocaleString('en')} ${name}`);
  return missing.length === 0 ? result : { ...result, notShown: missing.join(', ') };
}
