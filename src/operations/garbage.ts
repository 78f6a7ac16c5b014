import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * V8 lets 64 MiB of dead buffers gather, since they lie outside of its heap, so an export of 1,000,000 bookmarks would add
 * 70 to 72 MiB to the process (bound: 64) and the receiving of a 64 MiB import 49 to 63; with these collections it is 22 and 17.
 */

/** After how many bytes of buffers that are no longer used a minor collection is made. */
const MINOR_EVERY_BYTES = 2 * 1_048_576;

/**
 * A minor collection leaves a buffer alone that two earlier ones saw in use, dead or not. When those that are left reach
 * this size, a major collection is made, which takes some 20 ms. At half the size other requests waited twice as long
 * beside ten imports.
 */
const MAJOR_ABOVE_BYTES = 16 * 1_048_576;

type CollectGarbage = (options: { type: 'minor' | 'major' }) => void;

function findCollector(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const found: CollectGarbage = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return found;
}

/** What is in use or was left alone, buffers and the texts that were made of them. */
function usedBytes(): number {
  const { external_memory: outside, used_heap_size: inside } = getHeapStatistics();
  return outside + inside;
}

let collect: CollectGarbage | undefined;
let releasedBytes = 0;
/** The fewest bytes in use since the last major collection. */
let fewestBytes = Number.POSITIVE_INFINITY;

/** Streams call this with the size of each buffer that they have used; it collects garbage when there is enough. */
export function releaseBytes(bytes: number): void {
  releasedBytes += bytes;
  if (releasedBytes < MINOR_EVERY_BYTES) return;
  releasedBytes = 0;
  collect ??= findCollector();
  collect({ type: 'minor' });
  const used = usedBytes();
  fewestBytes = Math.min(fewestBytes, used);
  if (used < fewestBytes + MAJOR_ABOVE_BYTES) return;
  collect({ type: 'major' });
  fewestBytes = usedBytes();
}
