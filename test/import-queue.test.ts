import { execFile, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JobType } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCoordination, startCounters, systemClock } from '../src/coordination/open.ts';
import type { Coordination } from '../src/coordination/port.ts';
import { ProcessImportQueue, type RunImport, watchRuns } from '../src/coordination/process/imports.ts';
import { openAdmin } from './support/coordination.ts';
import { listJobs } from './support/import-jobs.ts';
import { startRedis, useRedis } from './support/redis.ts';
import { accessTo } from './support/redis-access.ts';
import { silentLog } from './support/silent-log.ts';

/** Makes a function that runs imports. Tests can wait until an import begins, and decide when it ends. */
const stageImports = () => {
  const begun: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<undefined>>();
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
  return { begun, run, untilBegun, finish: (id: string) => gate(id).resolve(undefined) };
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

  const open = async (
    runImport: RunImport,
    redisPrefix: string,
    { url = server.url, log = silentLog } = {},
  ) => {
    const coordination = await openCoordination(
      { redis: accessTo(url, redisPrefix), windowSeconds: 1, maxHeld: 1, maxHeldPerHolder: 1 },
      { log, runImport },
    );
    onTestFinished(() => coordination.close());
    return coordination;
  };
  /** Returns the ids of the imports whose jobs are in a state, oldest job first. */
  const importsIn = async (prefix: string, state: JobType): Promise<string[]> =>
    (await listJobs(server.url, prefix, [state])).map(({ data }) => data.id);
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
    const [job] = await listJobs(server.url, prefix, ['waiting']);
    expect(job!.data).toEqual({ id });
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
    await expect.poll(() => importsIn(prefix, 'failed')).toEqual(['a']);
    await imports.add('b');
    await imports.add('a');
    await expect.poll(() => importsIn(prefix, 'completed')).toEqual(['b', 'a']);
    expect(begun).toEqual(['a', 'b', 'a']);
    expect(counters).toMatchObject({ importsFailed: 1, importsDone: 2 });
  });

  test('whose worker is killed run on another worker, without being added again', async () => {
    const prefix = newPrefix();
    const { imports, counters } = await open(async () => undefined, prefix);
    const child = fork(new URL('./support/coordination-child.ts', import.meta.url), [server.url, prefix]);
    onTestFinished(() => void child.kill('SIGKILL'));
    expect((await once(child, 'message'))[0]).toBe('ready');
    await imports.add('a');
    expect((await once(child, 'message'))[0]).toBe('a');
    expect(await importsIn(prefix, 'active')).toEqual(['a']);
    child.kill('SIGKILL');
    await imports.startWorker(1);
    await expect.poll(() => importsIn(prefix, 'completed'), { timeout: 15_000 }).toEqual(['a']);
    expect(counters.importsDone).toBe(1);
  });

  test('that lose their locks are logged once a minute, and without the ids of their jobs', async () => {
    const prefix = newPrefix();
    const { run, untilBegun, finish } = stageImports();
    const reasons: string[] = [];
    const warn = ({ reason }: { reason: string }) => void reasons.push(reason);
    const { imports } = await open(run, prefix, { log: { ...silentLog, warn } as typeof silentLog });
    await imports.startWorker(3);
    for (const id of ['a', 'b', 'c']) await imports.add(id);
    await untilBegun(3);
    const jobs = await listJobs(server.url, prefix, ['active']);
    expect(await server.client.del(jobs.map((job) => `{${prefix}}:imports:${job.id}:lock`))).toBe(3);
    for (const id of ['a', 'b', 'c']) finish(id);
    await expect.poll(() => reasons.length).toBeGreaterThan(0);
    await imports.stopWorker(0);
    expect(reasons).toEqual(['Missing lock for job …. moveToFinished']);
  });

  test('a job that has stalled too often fails, and the sweep can add its import again', async () => {
    const prefix = newPrefix();
    const { imports, counters } = await open(async () => undefined, prefix);
    await imports.add('a');
    const key = (name: string) => `{${prefix}}:imports:${name}`;
    const [job] = await listJobs(server.url, prefix, ['waiting']);
    await server.client.hset(key(job!.id!), 'stc', 100);
    await server.client.lmove(key('wait'), key('active'), 'RIGHT', 'LEFT');
    await imports.startWorker(1);
    await expect.poll(() => importsIn(prefix, 'failed'), { timeout: 10_000 }).toEqual(['a']);
    expect(counters.importsDone).toBe(0);
    await imports.add('a');
    await expect.poll(() => importsIn(prefix, 'completed')).toEqual(['a']);
  });

  test('can be added again after their job has ended, whether it completed or failed', async () => {
    const prefix = newPrefix();
    const codes = [undefined, 'LIMIT_EXCEEDED', undefined] as const;
    let runs = 0;
    const { imports } = await open(async () => codes[runs++], prefix);
    await imports.startWorker(1);
    const states = ['completed', 'failed'] as const;
    const count = async () =>
      Promise.all(states.map(async (state) => (await importsIn(prefix, state)).length));
    await imports.add('a');
    await expect.poll(count).toEqual([1, 0]);
    await imports.add('a');
    await expect.poll(count).toEqual([1, 1]);
    await imports.add('a');
    await expect.poll(count).toEqual([2, 1]);
  });

  test('that fail leave a job whose reason is a code, and nothing of the error', async () => {
    const prefix = newPrefix();
    const { imports } = await open(async (id) => {
      if (id === 'refused') return 'VALIDATION_ERROR';
      throw new Error('http://secret.example/ is wrong');
    }, prefix);
    await imports.startWorker(1);
    await imports.add('refused');
    await imports.add('thrown');
    await expect.poll(() => importsIn(prefix, 'failed')).toEqual(['refused', 'thrown']);
    const jobs = await listJobs(server.url, prefix, ['failed']);
    expect(jobs.map(({ failedReason }) => failedReason)).toEqual(['VALIDATION_ERROR', 'ATTEMPT_FAILED']);
    const stored = await Promise.all(
      jobs.map(({ id }) => server.client.hgetall(`{${prefix}}:imports:${id}`)),
    );
    expect(JSON.stringify(stored)).not.toContain('secret');
  });

  test('that fail are listed by the command of the runbook', async () => {
    const { imports } = await open(async () => 'LIMIT_EXCEEDED', 'bookmarks');
    await imports.startWorker(1);
    await imports.add('7-id');
    await expect.poll(() => importsIn('bookmarks', 'failed')).toEqual(['7-id']);
    const runbook = readFileSync(new URL('../docs/runbook.md', import.meta.url), 'utf8');
    const [, script] = /node --input-type=module --eval '([^']*)'/.exec(runbook)!;
    const env = { ...process.env, REDIS_URL: server.url };
    const { stdout } = await promisify(execFile)('node', ['--input-type=module', '--eval', script!], { env });
    expect(stdout).toMatch(/failed: 1/);
    expect(stdout).toMatch(/^\d{4}-\S+Z 7-id LIMIT_EXCEEDED$/m);
  });

  test('leave the jobs of the latest hundred that completed', async () => {
    const prefix = newPrefix();
    const { imports, counters } = await open(async () => undefined, prefix);
    await imports.startWorker(10);
    const ids = Array.from({ length: 110 }, (_, n) => `${n}`);
    for (const id of ids) await imports.add(id);
    await expect.poll(() => counters.importsDone).toBe(110);
    await expect.poll(() => importsIn(prefix, 'active')).toEqual([]);
    expect(await importsIn(prefix, 'completed')).toHaveLength(100);
    // A job leaves no other keys: one hash for each job, and the keys of the queue itself.
    expect((await server.client.keys(`{${prefix}}:imports:*`)).length).toBeLessThan(110);
  });

  test('go on, and do not run twice, while the connections to Redis are replaced', async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const prefix = newPrefix();
    const { begun, run, untilBegun, finish } = stageImports();
    const coordination = await open(run, prefix, { url: own.url });
    const { imports, counters } = coordination;
    await imports.startWorker(2);
    await imports.add('a');
    await untilBegun(1);
    const active = async () => (await listJobs(own.url, prefix, ['active'])).map(({ data }) => data.id);
    expect(await active()).toEqual(['a']);
    const { degradations } = counters;
    const admin = openAdmin(own.url);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect.poll(() => counters.degradations).toBeGreaterThan(degradations);
    await expect.poll(() => coordination.state).toBe('shared');
    await imports.add('b');
    await untilBegun(2);
    finish('b');
    // The new worker takes the job of the first one, and waits for the run that still goes on.
    await expect.poll(async () => (await listJobs(own.url, prefix, ['completed'])).length).toBe(1);
    await expect
      .poll(async () => (await listJobs(own.url, prefix, ['waiting'])).length, { timeout: 15_000 })
      .toBe(0);
    finish('a');
    await expect.poll(active, { timeout: 15_000 }).toEqual([]);
    expect(begun).toEqual(['a', 'b']);
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
    expect(await importsIn(prefix, 'completed')).toEqual(['a']);
    expect(await importsIn(prefix, 'waiting')).toEqual(['b']);
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
      const waiting = await importsIn(prefix, 'waiting');
      expect([...waiting, ...begun], `after ${turns} turns`).toContain(`${turns}`);
    }
  });

  test('run in the process that adds them while Redis is unavailable, and the process does not wait for Redis', async () => {
    await using own = await startRedis();
    const { run, untilBegun, finish } = stageImports();
    const { imports, counters } = await open(run, newPrefix(), { url: own.url });
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
    const adder = await open(neverHere, prefix, { url: own.url });
    const worker = await open(run, prefix, { url: own.url });
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
      const adder = await open(neverHere, 'test', { url: own.url });
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
