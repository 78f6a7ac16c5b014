import type { Logger } from 'pino';
import { ANSWER_WAIT_MS } from './circuit.ts';
import { withDeadline } from './deadline.ts';
import type { RunImport } from './import-runs.ts';
import { nameKeys, type RedisKeys } from './keys.ts';
import { LinkState } from './link-state.ts';
import type { Clock, Coordination, CoordinationOptions, Counters } from './port.ts';
import { ProcessImportQueue } from './process-imports.ts';
import { ProcessRateLimiter } from './process-limiter.ts';
import {
  openFastClient,
  openPatientClient,
  openSubscriber,
  type RedisTarget,
  watchClient,
} from './redis-clients.ts';
import { describeRedisError, openComplaints } from './redis-errors.ts';
import { RedisImportQueue } from './redis-imports.ts';
import { openLimiterCircuit, RedisRateLimiter } from './redis-limiter.ts';
import { RedisPendingValues } from './redis-pending.ts';
import { RedisSubscription } from './redis-subscription.ts';
import { RedisWakeBus } from './redis-wakes.ts';
import { WaiterRegistry } from './waiters.ts';
import { openLimiters } from './windows.ts';

/** How long a start waits for Redis before it goes on without it. */
const START_WAIT_MS = 2_000;

const DEFAULT_PREFIX = 'bookmarks';

/** What all parts of the Redis side are given. */
export interface SharedParts {
  options: CoordinationOptions;
  target: RedisTarget;
  log: Logger;
  runImport: RunImport;
  clock: Clock;
  counters: Counters;
}

/** Opens the Redis side. Resolves when Redis serves, or after two seconds without it. */
export async function openShared(shared: SharedParts): Promise<Coordination> {
  const { options, log, clock, counters } = shared;
  const keys = nameKeys(options.redisPrefix ?? DEFAULT_PREFIX);
  const state = new LinkState(log, counters);
  const limits = openSharedLimiters(shared, keys, state);
  const wakes = openWakes(shared, keys, state);
  const imports = openImports(shared, keys);
  await withDeadline(state.firstUp, START_WAIT_MS).catch(() => state.settle());
  return {
    limiters: limits.limiters,
    wakes: wakes.bus,
    imports: imports.queue,
    pending: limits.pending,
    get state() {
      return state.shared ? 'shared' : 'degraded';
    },
    counters,
    clock,
    async close() {
      state.end();
      await imports.close();
      await wakes.close();
      limits.close();
    },
  };
}

function openSharedLimiters(shared: SharedParts, keys: RedisKeys, state: LinkState) {
  const { options, target, clock, counters } = shared;
  const client = openFastClient(target);
  const circuit = openLimiterCircuit(client, keys.probe, (up, reason) => state.set('limits', up, reason));
  const limiters = openLimiters(options.windowMs, (keyPart, windowMs) => {
    const memory = new ProcessRateLimiter(windowMs, clock, counters);
    return new RedisRateLimiter({
      client,
      circuit,
      keyPrefix: keys.limit(keyPart),
      windowMs,
      memory,
      counters,
    });
  });
  // Few and short, on the connection that is watched best.
  const pending = new RedisPendingValues(client, circuit, keys);
  const close = () => {
    circuit.end();
    client.disconnect();
  };
  return { limiters, pending, close };
}

function openWakes({ options, target, clock, counters }: SharedParts, keys: RedisKeys, state: LinkState) {
  const waiters = new WaiterRegistry(clock, options);
  waiters.setConnected(false);
  const publisher = openFastClient(target);
  const bus = new RedisWakeBus({ publisher, channel: keys.wakes, waiters, counters });
  watchClient(publisher, {
    ready: () => {
      state.set('wakes out', true, 'connected');
      void bus.flush();
    },
    lost: (reason) => state.set('wakes out', false, reason),
  });
  const subscription = new RedisSubscription({
    open: (attempt) => openSubscriber(target, attempt),
    channel: keys.wakes,
    onMessage: (message) => bus.receive(message),
    onConnected: (connected, reason) => {
      state.set('wakes in', connected, reason);
      waiters.setConnected(connected);
    },
  });
  const close = async () => {
    waiters.drain(0);
    subscription.end();
    await withDeadline(bus.flush(), ANSWER_WAIT_MS).catch(() => {});
    publisher.disconnect();
  };
  return { bus, close };
}

function openImports({ target, log, runImport, clock, counters }: SharedParts, keys: RedisKeys) {
  const client = openFastClient(target);
  client.on('error', () => {});
  const queue = new RedisImportQueue({
    keys,
    client,
    openWorkerClient: () => openPatientClient(target),
    local: new ProcessImportQueue(runImport, clock, counters),
    runImport,
    counters,
    complain: openComplaints(log),
    noteError: (error) => log.debug({ reason: describeRedisError(error) }, 'import queue'),
  });
  const close = async () => {
    await queue.close();
    client.disconnect();
  };
  return { queue, close };
}
