import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultKind } from './faults.ts';
import type { Fleet } from './fleet.ts';
import { type Fault, type Journal, nowMs } from './journal.ts';
import { type Random, seedRandom } from './random.ts';

/**
 * During a storm, a new fault begins every 1 to 3 seconds, and faults may overlap. After each storm comes a calm,
 * because some checks use only the times without faults.
 */
const PAUSE_MS = { min: 1_000, max: 3_000 };
const STORM_MS = 24_000;
const CALM_MS = 16_000;

/** Causes faults until the signal aborts. Resolves when everything is repaired. The draws depend only on the seed. */
export async function runFaults(
  fleet: Fleet,
  journal: Journal,
  draw: Random,
  signal: AbortSignal,
  faultKinds: readonly FaultKind[],
): Promise<void> {
  const busy = new Map<string, Promise<void>>();
  const kinds = faultKinds.filter(({ targets }) => targets(fleet).length > 0);
  for (let stormMs = 0; !signal.aborted; ) {
    const pauseMs = draw.integer(PAUSE_MS.min, PAUSE_MS.max);
    stormMs += pauseMs;
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    if (stormMs > STORM_MS) {
      stormMs = 0;
      await sleep(CALM_MS, undefined, { signal }).catch(() => {});
      continue;
    }
    const kind = drawKind(kinds, draw);
    const target = draw.pick(kind.targets(fleet));
    const own = seedRandom(draw.integer(0, 2 ** 31));
    // Each target has only one fault at a time, because a frozen process cannot be stopped, and a killed one cannot be
    // frozen.
    if (busy.has(target)) continue;
    busy.set(
      target,
      runFault(fleet, journal, kind, target, own).finally(() => busy.delete(target)),
    );
  }
  await Promise.all(busy.values());
}

function drawKind(kinds: readonly FaultKind[], draw: Random): FaultKind {
  let left = draw.next() * kinds.reduce((sum, { weight }) => sum + weight, 0);
  return kinds.find(({ weight }) => {
    left -= weight;
    return left < 0;
  })!;
}

async function runFault(
  fleet: Fleet,
  journal: Journal,
  { kind, run }: FaultKind,
  target: string,
  draw: Random,
): Promise<void> {
  const fault: Fault = { kind, target, startMs: nowMs(), endMs: Number.POSITIVE_INFINITY };
  journal.faults.push(fault);
  try {
    await run(fleet, target, draw);
  } catch (error) {
    fault.failure = String(error);
    // An attempt to cause a fault in Postgres may fail, because a server that is restarting refuses the statements.
    if (!target.includes('postgres')) journal.surprises.push(`fault ${kind} of ${target}: ${String(error)}`);
  }
  fault.endMs = nowMs();
}
