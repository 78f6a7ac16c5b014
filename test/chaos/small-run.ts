import { DEFAULTS, type RunOptions } from './run.ts';

/** A run for tests, with fewer but busier users. */
export const SMALL_RUN: RunOptions = {
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
