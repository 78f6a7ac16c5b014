import { describe, expect, test } from 'vitest';
import { useApiAndWorker } from '../support/api-and-worker.ts';
import { HOSTILE_IMPORTS } from '../support/hostile-imports.ts';
import { measureGrowth } from '../support/memory.ts';
import { useService } from '../support/service.ts';

// The most expensive bodies of 64 MiB do not affect anybody except their sender.

const MIB = 1_048_576;

const service = useService();

describe('import bodies', () => {
  const processes = useApiAndWorker(service);

  test.for(Object.entries(HOSTILE_IMPORTS))(
    'with %s are imported or refused, with less than 512 MiB in a worker and 160 MiB in its replica',
    async ([_, { body, response }]) => {
      const { api, worker } = processes;
      const greedy = await service.user({ premium: true });
      const text = body();
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64 * MIB);
      let received: unknown;
      let apiGrowth = 0;
      const workerGrowth = await measureGrowth(worker.pid, async () => {
        apiGrowth = await measureGrowth(api.pid, async () => {
          received = (await api.post('/import', text, greedy.token)).body;
        });
      });
      if ((received as { error?: string }).error !== 'body: is too complex to be parsed')
        expect(received).toMatchObject(response);
      expect(workerGrowth).toBeLessThan(512 * MIB);
      // The limit is this high because Node does not free the received bytes immediately. See
      // docs/decisions/0020-no-forced-garbage-collection.md.
      expect(apiGrowth).toBeLessThan(160 * MIB);
    },
  );
});
