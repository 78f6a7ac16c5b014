import type { Config } from '../config.ts';
import type { Coordination } from '../coordination/port.ts';
import type { Semaphore } from '../flow/semaphore.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Database } from '../store/driver/database.ts';
import type { Preparers } from './preparers.ts';

/** The parts of the process's context that imports need. */
export interface ImportContext {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  /** A separate pool, because the statements of imports may take minutes. */
  readonly importDatabase: Database;
  /** Limits how many imports of one user write at a time. The key is the user's id. */
  readonly importPermits: Semaphore<number>;
  readonly preparers: Preparers;
  readonly coordination: Coordination;
  readonly metrics: Metrics;
}
