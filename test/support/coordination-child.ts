import { openCoordination } from '../../src/coordination/open.ts';
import { silentLog } from './silent-log.ts';

/**
 * A replica in a process of its own, to be killed or to end by itself: it says which import it has begun, never ends
 * one, and closes when told anything.
 */
const [redisUrl, redisPrefix] = process.argv.slice(2) as [string, string];
const coordination = await openCoordination(
  { redisUrls: [redisUrl], redisPrefix, windowMs: 1_000, maxHeld: 1, maxHeldPerHolder: 1 },
  {
    log: silentLog,
    runImport: (id) => {
      process.send!(id);
      return new Promise(() => {});
    },
  },
);
await coordination.imports.startWorker(1);
process.once('message', async () => {
  await coordination.imports.stopWorker(100);
  await coordination.close();
  process.disconnect!();
});
process.send!('ready');
