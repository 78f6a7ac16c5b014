import type { Logger } from 'pino';
import type { Counters } from './port.ts';

/** Runs one staged import; it must bear being run twice, and side by side with itself. */
export type RunImport = (id: string) => Promise<void>;

/** The same, counted, and logged where it fails. */
export function watchRuns(runImport: RunImport, log: Logger, counters: Counters): RunImport {
  return async (id) => {
    try {
      await runImport(id);
      counters.importsDone += 1;
    } catch (error) {
      counters.importsFailed += 1;
      log.error({ importId: id, err: error }, 'import failed; it stays staged and is tried again');
      throw error;
    }
  };
}
