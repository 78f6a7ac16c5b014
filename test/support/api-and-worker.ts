import { afterAll, beforeAll } from 'vitest';
import { startRedis } from './redis.ts';
import { type Replica, startReplica } from './replica.ts';
import type { TestService } from './service.ts';

/**
 * Starts a process for requests and a worker process for all tests of a `describe` block. Both use the database of
 * `service`. They share a new Redis, which `service` does not use.
 */
export function useApiAndWorker(service: TestService): { api: Replica; worker: Replica } {
  const started = {} as { api: Replica; worker: Replica };
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    const redis = opened.use(await startRedis());
    // On a slow machine, a large import may take longer than the defaults. `fetch` waits 300 s.
    const env = {
      DATABASE_URL: service.database.url,
      REDIS_URL: redis.url,
      IMPORT_WAIT_SECONDS: 280,
      REQUEST_TIMEOUT_SECONDS: 280,
    };
    const [api, worker] = await Promise.all([startReplica('api', env), startReplica('worker', env)]);
    Object.assign(started, { api: opened.use(api), worker: opened.use(worker) });
  });
  afterAll(() => opened.disposeAsync());
  return started;
}
