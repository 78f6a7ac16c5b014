import { removeFolder } from '../support/folders.ts';
import { killNotedProcesses } from '../support/processes.ts';
import { useRunDir } from '../support/run.ts';
import { makeRunFolder, sweepKilledRuns } from '../support/sweep.ts';

/** Makes the folder for all that a run outside of Vitest starts and writes; gone when disposed, as is what still runs. */
export function openRunFolder(): Disposable {
  sweepKilledRuns();
  const folder = makeRunFolder();
  useRunDir(folder);
  const close = () => {
    killNotedProcesses(folder);
    removeFolder(folder);
  };
  const endBy = () => {
    close();
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, endBy);
  return {
    [Symbol.dispose]() {
      for (const signal of ['SIGINT', 'SIGTERM']) process.removeListener(signal, endBy);
      close();
    },
  };
}
