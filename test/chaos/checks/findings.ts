/** The promises to prove, in the order of the table that a run prints. */
export const POINTS = {
  added: '1 acknowledged adds are there, with their content',
  followed: '1 every follower got each bookmark once, in order',
  mirrored: '1 every mirror equals the database',
  unseen: '1 no edit is overwritten unseen',
  woken: '1 a held poll sees a commit in time, while all is calm',
  asked: '2 nothing is there that nobody asked for, nothing twice',
  imported: '3 imports are whole or not at all, and add up',
  looked: '3 no response mixes before and after, or lacks what was there',
  capped: '4 the cap is never exceeded',
  limited: '4 the limiter is never exceeded',
  answered: '5 no 500, nothing hangs beyond its deadline',
  lived: '5 no process ends or logs an error by itself',
  rested: '5 everything returns to its rest',
} as const;

export type Point = keyof typeof POINTS;

/** What a check examined, and the faults it found. */
export interface Result {
  point: Point;
  /** By kind: how many items were checked. */
  counts: Record<string, number>;
  /** One sentence per fault. */
  findings: string[];
  /** Why the run proves nothing about this point. Undefined if the run produced enough evidence. */
  notShown?: string;
}

/** Returns whether every point has enough evidence and no fault. */
export const isSound = (results: readonly Result[]): boolean =>
  results.every(({ findings, notShown }) => findings.length === 0 && notShown === undefined);
