import type { Environment } from './environment.ts';
import type { Line } from './report.ts';
import type { Effort } from './rounds.ts';

/** The options of a run. */
export interface Plan {
  environment: Environment;
  effort: Effort;
  /** Whether this is a smoke run, with small collections and one round. Its figures mean nothing. */
  quick: boolean;
  /** Whether `growth` also measures with ten million bookmarks. */
  large: boolean;
}

/**
 * Returns the database for a benchmark that writes. It is a copy, so that the next benchmark reads the same rows. A
 * smoke run uses the original.
 */
export const copyForWrites = ({ environment, quick }: Plan, url: string, name: string): Promise<string> =>
  quick ? Promise.resolve(url) : environment.copy(url, name);

/** A benchmark. Its result is one or more lines of the table. */
export interface Bench {
  name: string;
  run(plan: Plan): Promise<Line[]>;
}
