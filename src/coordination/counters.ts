import type { Counters } from './port.ts';

/** Counters at zero. */
export function startCounters(): Counters {
  return {
    admitted: 0,
    refused: 0,
    fallback: 0,
    wakesPublished: 0,
    wakesReceived: 0,
    importsQueued: 0,
    importsInProcess: 0,
    importsDone: 0,
    importsFailed: 0,
    degradations: 0,
  };
}
