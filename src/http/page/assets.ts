import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Assets } from './build-assets.ts';

/**
 * The files of the page, made at the first request for one: a worker thread takes some tenths of a second, in which
 * this process serves on. A replica that is never asked for the page never makes them.
 */
let made: Promise<Assets> | undefined;

/** The files of the page. Where making them failed, the next request tries again. */
export function findAssets(): Promise<Assets> {
  made ??= makeAssets().catch((error: unknown) => {
    made = undefined;
    throw error;
  });
  return made;
}

async function makeAssets(): Promise<Assets> {
  const worker = new Worker(new URL('./build-assets.ts', import.meta.url), {
    // Node says once in each process that stripping types is experimental, which it is not for its own loader.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  try {
    const [assets] = await once(worker, 'message');
    return assets;
  } finally {
    await worker.terminate();
  }
}
