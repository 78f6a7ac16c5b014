import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Buffers live outside of the heap that V8 watches: it lets 64 MiB of dead ones gather before it looks. Whoever passes
 * on a stream of them says so here, and the process stays as small as what it holds.
 */
const BYTES_BETWEEN = 2 * 1_048_576;

type CollectGarbage = (options: { type: 'minor' }) => void;

function findCollector(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const found: CollectGarbage = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return found;
}

let collect: CollectGarbage | undefined;
let passed = 0;

/** So many bytes of a stream were passed on and are held no longer. */
export function notePassed(bytes: number): void {
  passed += bytes;
  if (passed < BYTES_BETWEEN) return;
  passed = 0;
  collect ??= findCollector();
  collect({ type: 'minor' });
}
