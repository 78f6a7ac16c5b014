import { openCoordination } from '../../src/coordination/open.ts';
import { accessTo } from './redis-access.ts';
import { silentLog } from './silent-log.ts';

/**
 * A process that runs a replica's coordination. Tests kill this process or tell it to end. The process sends its parent
 * the id of each import that it begins, and never finishes an import. It ends when its parent sends a message.
 */
const [redisUrl, redisPrefix] = process.argv.slice(2) as [string, string];
const coordination = await openCoordination(
  { redis: accessTo(redisUrl, redisPrefix), windowSeconds: 1, maxHeld: 1, maxHeldPerHolder: 1 },
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
