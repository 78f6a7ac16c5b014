import type { Logger } from 'pino';
import type { Counters } from './port.ts';

/**
 * Runs one staged import, or leaves it where another process has it. It must bear being called twice, and at once. When
 * `stop` aborts it gives the import back, and returns as soon as it can.
 */
export type RunImport = (id: string, stop: AbortSignal) => Promise<void>;

/** The same, counted, and logged where it fails. */
export function watchRuns(runImport: RunImport, log: Logger, counters: Counters): RunImport {
  return async (id, stop) => {
    try {
      await runImport(id, stop);
      counters.importsDone += 1;
    } catch (error) {
      counters.importsFailed += 1;
      log.error({ importId: id, err: error }, 'import failed; it stays staged and is tried again');
      throw error;
    }
  };
}
