import type { Environment } from './environment.ts';
import type { Line } from './report.ts';
import type { Effort } from './rounds.ts';

/** The options of a run. */
export interface Plan {
  environment: Environment;
  effort: Effort;
  /** A smoke run with small collections and one round. Its figures mean nothing. */
  quick: boolean;
  /** Includes the benchmarks that take an hour, with ten million bookmarks. */
  large: boolean;
}

/**
 * The database for a benchmark that writes: a copy, so that the next benchmark reads the same rows. A smoke run needs
 * none.
 */
export const copyForWrites = ({ environment, quick }: Plan, url: string, name: string): Promise<string> =>
  quick ? Promise.resolve(url) : environment.copy(url, name);

/** A benchmark, which yields one or more lines of the table. */
export interface Bench {
  name: string;
  run(plan: Plan): Promise<Line[]>;
}
