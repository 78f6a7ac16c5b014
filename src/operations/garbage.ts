import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Buffers live outside of the heap that V8 watches: it lets 64 MiB of dead ones gather before it looks. Whoever passes
 * on a stream of them says so here, and the process stays as small as what it holds.
 */
const BYTES_BETWEEN = 2 * 1_048_576;

/**
 * A buffer that two minor collections have seen in use is left alone by the next ones, dead or not. Those are few, and
 * gather: past so many bytes everything is collected, which takes some 20 ms. Half as many doubled what other requests
 * waited beside ten imports.
 */
const LEFT_ALONE_BYTES = 16 * 1_048_576;

type CollectGarbage = (options: { type: 'minor' | 'major' }) => void;

function findCollector(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const found: CollectGarbage = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return found;
}

const outsideBytes = (): number => getHeapStatistics().external_memory;

let collect: CollectGarbage | undefined;
let passed = 0;
/** The least that lay outside of the heap since everything was collected. */
let leastOutside = Number.POSITIVE_INFINITY;

/** So many bytes of a stream were passed on and are held no longer. */
export function notePassed(bytes: number): void {
  passed += bytes;
  if (passed < BYTES_BETWEEN) return;
  passed = 0;
  collect ??= findCollector();
  collect({ type: 'minor' });
  const outside = outsideBytes();
  leastOutside = Math.min(leastOutside, outside);
  if (outside < leastOutside + LEFT_ALONE_BYTES) return;
  collect({ type: 'major' });
  leastOutside = outsideBytes();
}
