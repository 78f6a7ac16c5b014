import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Each process of the service loads this file before its own code. On SIGUSR2, the process reads `stepMs` from the file
 * that `CHAOS_COMMANDS` names, sets its wall clock to the real time plus `stepMs`, collects garbage and logs its
 * resources. The monotonic clock does not change, just as when an operator sets a machine's clock.
 */

const RealDate = Date;
let offsetMs = 0;

class SteppedDate extends RealDate {
  constructor(...args: unknown[]) {
    if (args.length === 0) super(RealDate.now() + offsetMs);
    else super(...(args as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

process.on('SIGUSR2', () => {
  const { stepMs } = JSON.parse(readFileSync(process.env.CHAOS_COMMANDS!, 'utf8'));
  if (stepMs !== offsetMs) {
    offsetMs = stepMs;
    globalThis.Date = SteppedDate as DateConstructor;
  }
  collect();
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const heapBytes = process.memoryUsage().heapUsed;
  console.log(JSON.stringify({ level: 30, msg: 'chaos report', heapBytes, resources }));
});
