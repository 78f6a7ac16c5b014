import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Assets } from './build-assets.ts';

/**
 * The files of the page. They are built at the first request that needs them, in a worker thread, so that the process
 * keeps serving. A replica that gets no such request never builds them.
 */
let building: Promise<Assets> | undefined;

/** Returns the files of the page. If building them failed, the next request tries again. */
export function findAssets(): Promise<Assets> {
  building ??= makeAssets().catch((error: unknown) => {
    building = undefined;
    throw error;
  });
  return building;
}

async function makeAssets(): Promise<Assets> {
  const worker = new Worker(new URL('./build-assets.ts', import.meta.url), {
    // This option silences the warning that `stripTypeScriptTypes` is experimental.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  try {
    const [assets] = await once(worker, 'message');
    return assets;
  } finally {
    await worker.terminate();
  }
}
