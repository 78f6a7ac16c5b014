import { afterAll, beforeAll } from 'vitest';
import { startRedis } from './redis.ts';
import { type Replica, startReplica } from './replica.ts';
import type { TestService } from './service.ts';

/** Two processes over the database of a service, for all tests of a `describe` block, with a Redis of their own. */
export function useApiAndWorker(service: TestService): { api: Replica; worker: Replica } {
  const started = {} as { api: Replica; worker: Replica };
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    const redis = opened.use(await startRedis());
    const env = { DATABASE_URL: service.database.url, REDIS_URL: redis.url };
    const [api, worker] = await Promise.all([startReplica('api', env), startReplica('worker', env)]);
    Object.assign(started, { api: opened.use(api), worker: opened.use(worker) });
  }, 60_000);
  afterAll(() => opened.disposeAsync());
  return started;
}
