import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOSTILE_IMPORTS } from '../support/hostile-imports.ts';
import { measureGrowth } from '../support/memory.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { useService } from '../support/service.ts';

// Bodies of 64 MiB that are as costly as can be harm nobody but who sends them.

const MIB = 1_048_576;

const service = useService();

describe('bodies of imports', { timeout: 240_000 }, () => {
  let redis: RedisServer;
  let api: Replica;
  let worker: Replica;

  beforeAll(async () => {
    redis = await startRedis();
    const env = { DATABASE_URL: service.database.url, REDIS_URL: redis.url };
    [api, worker] = await Promise.all([startReplica('api', env), startReplica('worker', env)]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all([api, worker].map((replica) => replica[Symbol.asyncDispose]()));
    await redis.stop();
  });

  test.for(Object.entries(HOSTILE_IMPORTS))(
    'of %s cost a worker less than 384 MiB and its replica less than 64',
    async ([_, { body, response }]) => {
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
      expect(received).toMatchObject(response);
      expect(workerGrowth).toBeLessThan(384 * MIB);
      expect(apiGrowth).toBeLessThan(64 * MIB);
    },
  );
});
