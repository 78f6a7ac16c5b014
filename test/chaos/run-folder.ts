import { removeFolder } from '../support/folders.ts';
import { killNotedProcesses } from '../support/processes.ts';
import { useRunDir } from '../support/run.ts';
import { makeRunFolder, sweepKilledRuns } from '../support/sweep.ts';

/** Creates the folder for a run outside of Vitest. Disposing of it ends its processes and deletes the folder. */
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
