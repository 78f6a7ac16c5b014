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

/** A benchmark, which yields one or more lines of the table. */
export interface Bench {
  name: string;
  run(plan: Plan): Promise<Line[]>;
}
