import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination, startCounters, systemClock } from '../src/coordination/open.ts';
import type { Coordination } from '../src/coordination/port.ts';
import { ProcessImportQueue, type RunImport, watchRuns } from '../src/coordination/process-imports.ts';
import { startRedis, useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

/** Makes a function that runs imports. Tests can wait until an import begins, and decide when it ends. */
const stageImports = () => {
  const begun: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gate = (id: string) => {
    if (!gates.has(id)) gates.set(id, Promise.withResolvers());
    return gates.get(id)!;
  };
  let told = Promise.withResolvers<void>();
  const run: RunImport = (id) => {
    begun.push(id);
    told.resolve();
    told = Promise.withResolvers();
    return gate(id).promise;
  };
  const untilBegun = async (count: number) => {
    while (begun.length < count) await told.promise;
  };
  return { begun, run, untilBegun, finish: (id: string) => gate(id).resolve() };
};

describe('imports in the process', () => {
  const openQueue = (run: RunImport) => {
    const counters = startCounters();
    const runs = watchRuns(run, silentLog, counters);
    return { counters, queue: new ProcessImportQueue(runs, systemClock, counters) };
  };

  test("run up to the worker's concurrency at once, in the order in which they were added", async () => {
    const { begun, run, untilBegun, finish } = stageImports();
    const { queue } = openQueue(run);
    await queue.startWorker(3);
    for (const id of ['a', 'b', 'c', 'd', 'e']) await queue.add(id);
    await untilBegun(3);
    expect(begun).toEqual(['a', 'b', 'c']);
    finish('b');
    await untilBegun(4);
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
  });

  test('never run twice at once for one id, and can run again afterwards', async () => {
    const { begun, run, untilBegun, finish } = stageImports();
    const { queue } = openQueue(run);
    await queue.startWorker(1);
    for (const id of ['a', 'a', 'b', 'b']) await queue.add(id);
    await untilBegun(1);
    await queue.add('a');
    finish('a');
    await untilBegun(2);
    expect(begun).toEqual(['a', 'b']);
    await queue.add('a');
    finish('b');
    await untilBegun(3);
    expect(begun).toEqual(['a', 'b', 'a']);
  });

  test('continue after one of them throws', async () => {
    const { run, untilBegun } = stageImports();
    const { queue, counters } = openQueue(async (id, stop) => {
      if (id === 'bad') throw new Error('no');
      return run(id, stop);
    });
    await queue.startWorker(1);
    await queue.add('bad');
    await queue.add('good');
    await untilBegun(1);
    expect(counters).toMatchObject({ importsFailed: 1, importsInProcess: 2 });
  });

  test('stopping waits for running imports until the grace time ends, and not for queued ones', async () => {
    const { begun, run, untilBegun, finish } = stageImports();
    const { queue, counters } = openQueue(run);
    await queue.startWorker(1);
    await queue.add('a');
    await queue.add('b');
    await untilBegun(1);
    await queue.stopWorker(10);
    expect(counters.importsDone).toBe(0);
    const stopped = queue.stopWorker(20_000);
    finish('a');
    await stopped;
    expect(counters.importsDone).toBe(1);
    await queue.add('c');
    expect(begun).toEqual(['a']);
  });
});

describe('imports through Redis', () => {
  const server = useRedis();

  const open = async (runImport: RunImport, redisPrefix: string, url = server.url) => {
    const coordination = await openCoordination(
      { redis: accessTo(url, redisPrefix), windowSeconds: 1, maxHeld: 1, maxHeldPerHolder: 1 },
      { log: silentLog, runImport },
    );
    onTestFinished(() => coordination.close());
    return coordination;
  };
  const newPrefix = () => `test-${randomUUID()}`;
  const neverHere: RunImport = async () => {
    throw new Error('an import ran in the process that added it');
  };

  /**
   * Adds an import's id again and again until Redis accepts it. Returns how many attempts failed before that. After
   * each failed attempt, the import runs in this process instead, as decision 27 says.
   */
  async function addToRedis({ imports, counters }: Coordination, id: string): Promise<number> {
    const before = counters.importsQueued;
    for (let late = 0; ; late += 1) {
      await imports.add(id);
      if (counters.importsQueued > before) return late;
    }
  }

  test('run on another replica than the one that added them', async () => {
    const prefix = newPrefix();
    const { run, untilBegun } = stageImports();
    const adder = await open(neverHere, prefix);
    const worker = await open(run, prefix);
    await worker.imports.startWorker(1);
    const id = randomUUID();
    const late = await addToRedis(adder, id);
    await untilBegun(1);
    expect(adder.counters).toMatchObject({ importsQueued: 1, importsInProcess: late });
  });

  test('are jobs that contain only the id', async () => {
    const prefix = newPrefix();
    const adder = await open(neverHere, prefix);
    const id = randomUUID();
    await addToRedis(adder, id);
    expect(await server.client.hget(`{${prefix}}:imports:imp-${id}`, 'data')).toBe(JSON.stringify({ id }));
  });

  test('run once if they are added twice while queued, and again if they are added after their end', async () => {
    const prefix = newPrefix();
    const { begun, run, untilBegun, finish } = stageImports();
    const adder = await open(neverHere, prefix);
    await addToRedis(adder, 'a');
    await addToRedis(adder, 'a');
    const worker = await open(run, prefix);
    await worker.imports.startWorker(1);
    await untilBegun(1);
    finish('a');
    await addToRedis(adder, 'b');
    await untilBegun(2);
    expect(begun).toEqual(['a', 'b']);
    await addToRedis(adder, 'a');
    finish('b');
    await untilBegun(3);
    expect(begun).toEqual(['a', 'b', 'a']);
  });

  test('run concurrently up to the concurrency of the worker', async () => {
    const prefix = newPrefix();
    const { begun, run, untilBegun, finish } = stageImports();
    const { imports } = await open(run, prefix);
    await imports.startWorker(2);
    for (const id of ['a', 'b', 'c']) await imports.add(id);
    await untilBegun(2);
    expect(begun).toEqual(['a', 'b']);
    finish('a');
    await untilBegun(3);
    expect(begun[2]).toBe('c');
  });

  test('continue after one of them throws, which runs again when the sweep adds it again', async () => {
    const prefix = newPrefix();
    const begun: string[] = [];
    const { imports, counters } = await open(async (id) => {
      begun.push(id);
      if (begun.length === 1) throw new Error('not yet');
    }, prefix);
    await imports.startWorker(1);
    await imports.add('a');
    await expect.poll(() => counters.importsFailed).toBe(1);
    await expect.poll(() => server.client.exists(`{${prefix}}:imports:imp-a`)).toBe(0);
    await imports.add('b');
    await imports.add('a');
    await expect.poll(() => counters.importsDone).toBe(2);
    expect(begun).toEqual(['a', 'b', 'a']);
  });

  test('leave the queue once they begin, so that an import whose worker is killed can be added again', async () => {
    const prefix = newPrefix();
    const { imports, counters } = await open(async () => {}, prefix);
    const child = fork(new URL('./support/coordination-child.ts', import.meta.url), [server.url, prefix]);
    onTestFinished(() => void child.kill('SIGKILL'));
    expect((await once(child, 'message'))[0]).toBe('ready');
    await imports.add('a');
    expect((await once(child, 'message'))[0]).toBe('a');
    await expect.poll(() => server.client.exists(`{${prefix}}:imports:imp-a`)).toBe(0);
    child.kill('SIGKILL');
    await imports.startWorker(1);
    await imports.add('a');
    await expect.poll(() => counters.importsDone).toBe(1);
  });

  test('a job whose worker ends before it removes the job is taken over by another worker', async () => {
    const prefix = newPrefix();
    const { imports, counters } = await open(async () => {}, prefix);
    await imports.add('a');
    const key = (name: string) => `{${prefix}}:imports:${name}`;
    await server.client.lmove(key('wait'), key('active'), 'RIGHT', 'LEFT');
    await imports.startWorker(1);
    await expect.poll(() => counters.importsDone).toBe(1);
    await expect.poll(() => server.client.exists(key('imp-a'))).toBe(0);
  });

  // No sweep runs here. So the second worker gets the import only if the first worker gives it back.
  test('an import that still runs when the grace time ends is given back at once', async () => {
    const prefix = newPrefix();
    const first = stageImports();
    const second = stageImports();
    const one = await open(first.run, prefix);
    const two = await open(second.run, prefix);
    await one.imports.startWorker(1);
    await one.imports.add('a');
    await first.untilBegun(1);
    await two.imports.startWorker(1);
    await one.imports.stopWorker(50);
    await second.untilBegun(1);
    first.finish('a');
    second.finish('a');
  });

  test('stopping lets the running import finish, and starts no other', async () => {
    const prefix = newPrefix();
    const { begun, run, untilBegun, finish } = stageImports();
    const { imports, counters } = await open(run, prefix);
    await imports.startWorker(1);
    await imports.add('a');
    await untilBegun(1);
    await imports.add('b');
    const stopped = imports.stopWorker(20_000);
    finish('a');
    await stopped;
    expect(counters.importsDone).toBe(1);
    expect(begun).toEqual(['a']);
    expect(await server.client.exists(`{${prefix}}:imports:imp-a`)).toBe(0);
    expect(await server.client.exists(`{${prefix}}:imports:imp-b`)).toBe(1);
  });

  test('a job that arrives while a worker is being stopped is left to another worker', async () => {
    const prefix = newPrefix();
    const first = stageImports();
    const second = stageImports();
    const one = await open(first.run, prefix);
    const two = await open(second.run, prefix);
    await one.imports.startWorker(2);
    await one.imports.add('a');
    const stopped = one.imports.stopWorker(0);
    await one.imports.add('b');
    await two.imports.startWorker(2);
    await second.untilBegun(2);
    await stopped;
    expect(second.begun.toSorted()).toEqual(['a', 'b']);
    expect(first.begun).not.toContain('b');
  });

  // No sweep runs here either. A worker takes a job in several turns of the event loop, so this test stops it after each
  // number of turns.
  test('an import whose job a worker takes while it is being stopped is given back at once', async () => {
    const prefix = newPrefix();
    const begun: string[] = [];
    const { imports } = await open(async (id) => void begun.push(id), prefix);
    for (let turns = 0; turns < 30; turns += 1) {
      await imports.startWorker(1);
      await expect.poll(async () => `${await server.client.client('LIST')}`).toContain('cmd=bzpopmin');
      const added = imports.add(`${turns}`);
      for (let turn = 0; turn < turns; turn += 1) await setImmediate();
      await Promise.all([added, imports.stopWorker(0)]);
      const isQueued = await server.client.exists(`{${prefix}}:imports:imp-${turns}`);
      expect(isQueued === 1 || begun.includes(`${turns}`), `after ${turns} turns`).toBe(true);
    }
  });

  test('run in the process that adds them while Redis is unavailable, and the process does not wait for Redis', async () => {
    await using own = await startRedis();
    const { run, untilBegun, finish } = stageImports();
    const { imports, counters } = await open(run, newPrefix(), own.url);
    await own.kill();
    await imports.add('a');
    await untilBegun(1);
    expect(counters).toMatchObject({ importsQueued: 0, importsInProcess: 1, importsDone: 0 });
    finish('a');
  });

  test('continue without intervention after Redis was restarted empty', async () => {
    await using own = await startRedis();
    const prefix = newPrefix();
    const { run, untilBegun, finish } = stageImports();
    const adder = await open(neverHere, prefix, own.url);
    const worker = await open(run, prefix, own.url);
    await worker.imports.startWorker(1);
    await addToRedis(adder, 'a');
    await untilBegun(1);
    await own.restart();
    finish('a');
    // Adds the import again and again, as the sweep does for staged imports without a job.
    const sweep = setInterval(() => void adder.imports.add('b'), 100);
    onTestFinished(() => clearInterval(sweep));
    finish('b');
    await untilBegun(2);
  });

  describe.each(['there', 'down', 'frozen'] as const)('while Redis is %s', (state) => {
    test('nothing keeps the process alive after a worker is stopped and closed', async () => {
      const own = await startRedis();
      onTestFinished(() => own.stop());
      const child = fork(new URL('./support/coordination-child.ts', import.meta.url), [own.url, 'test']);
      onTestFinished(() => void child.kill('SIGKILL'));
      await once(child, 'message');
      const adder = await open(neverHere, 'test', own.url);
      const begun = once(child, 'message');
      await addToRedis(adder, 'a');
      expect((await begun)[0]).toBe('a');
      if (state === 'down') await own.kill();
      if (state === 'frozen') await own.freeze();
      child.send('close');
      expect(await once(child, 'exit')).toEqual([0, null]);
    });
  });
});
