import type { Environment } from './environment.ts';
import type { Line } from './report.ts';
import type { Effort } from './rounds.ts';

/** What a bench is given. */
export interface Plan {
  environment: Environment;
  effort: Effort;
  /** A smoke run: small collections, one round; its figures mean nothing. */
  quick: boolean;
  /** With what takes an hour: ten million bookmarks. */
  large: boolean;
}

/** One line, or a few, of the table. */
export interface Bench {
  name: string;
  run(plan: Plan): Promise<Line[]>;
}
