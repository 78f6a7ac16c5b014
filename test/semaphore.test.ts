import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Refusal, Semaphore, type SemaphoreOptions } from '../src/flow/semaphore.ts';

const semaphore = (options: Partial<SemaphoreOptions> = {}) =>
  new Semaphore<string>({
    permits: 1,
    waitMs: 0,
    refusalError: (refusal: Refusal) => new Error(refusal),
    ...options,
  });

const idle = { inUse: 0, waiting: 0, oldestWaitMs: 0 };

describe('permits', () => {
  test('a key has a limited number of permits, and further callers wait in order', async () => {
    const permits = semaphore({ permits: 2 });
    const order: string[] = [];
    let running = 0;
    const work = (name: string) => async () => {
      order.push(name);
      running++;
      expect(running).toBeLessThanOrEqual(2);
      await sleep(1);
      running--;
      return name;
    };
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const results = await Promise.all(names.map((name) => permits.run('ann', work(name))));
    expect(results).toEqual(names);
    expect(order).toEqual(names);
    expect(permits.gauges('ann')).toEqual({ size: 2, ...idle });
  });

  test('each key has its own permits', async () => {
    const permits = semaphore();
    const release = await permits.acquire('ann');
    await expect(permits.run('bob', async () => 'at once')).resolves.toBe('at once');
    release();
  });

  test('work that throws returns its permit', async () => {
    const permits = semaphore();
    const failing = permits.run('ann', () => Promise.reject(new Error('failed')));
    const second = permits.run('ann', async () => 'next');
    await expect(failing).rejects.toThrow('failed');
    await expect(second).resolves.toBe('next');
  });

  test('a permit is released once, even if its holder releases it several times', async () => {
    const permits = semaphore();
    const release = await permits.acquire('ann');
    const second = permits.acquire('ann');
    release();
    release();
    await second;
    expect(permits.gauges('ann')).toMatchObject({ inUse: 1, waiting: 0 });
  });

  test('work that does not need its permit passes it to the next waiter', async () => {
    const waits: number[] = [];
    const permits = semaphore({ onWaited: (seconds) => waits.push(seconds) });
    const release = await permits.acquire('ann');
    permits.enter(
      'ann',
      () => false,
      (error) => expect.unreachable(error.message),
    );
    const next = permits.acquire('ann');
    expect(permits.gauges('ann').waiting).toBe(2);
    release();
    (await next)();
    permits.enter(
      'ann',
      () => false,
      (error) => expect.unreachable(error.message),
    );
    expect(permits.gauges('ann')).toMatchObject(idle);
    expect(waits).toHaveLength(2);
  });
});

describe('waiters', () => {
  test('a caller that has waited too long is refused, and never starts', async () => {
    const permits = semaphore({ waitMs: 5 });
    const release = await permits.acquire('ann');
    let hasRun = false;
    const work = async () => {
      hasRun = true;
    };
    await expect(permits.run('ann', work)).rejects.toThrow('expired');
    release();
    expect(hasRun).toBe(false);
    expect(permits.gauges('ann')).toMatchObject(idle);
  });

  test('the callers behind a refused caller keep their places', async () => {
    const permits = semaphore({ waitMs: 5 });
    const release = await permits.acquire('ann');
    const first = permits.acquire('ann');
    await expect(first).rejects.toThrow('expired');
    const order: string[] = [];
    const later = ['b', 'c'].map((name) => permits.run('ann', async () => order.push(name)));
    release();
    await Promise.all(later);
    expect(order).toEqual(['b', 'c']);
  });

  test('callers beyond the limit of waiters are refused at once', async () => {
    const permits = semaphore({ maxWaiting: 1 });
    const release = await permits.acquire('ann');
    const second = permits.acquire('ann');
    await expect(permits.acquire('ann')).rejects.toThrow('full');
    release();
    (await second)();
  });

  test('all waiters of a key can be refused with one error, and waiters of other keys continue to wait', async () => {
    const permits = semaphore();
    const releases = await Promise.all(['ann', 'bob'].map((key) => permits.acquire(key)));
    const waiters = [permits.acquire('ann'), permits.acquire('ann')];
    const other = permits.acquire('bob');
    permits.refuseWaiters('ann', new Error('gone'));
    for (const waiter of waiters) await expect(waiter).rejects.toThrow('gone');
    expect(permits.gauges('bob').waiting).toBe(1);
    for (const release of releases) release();
    await other;
  });

  test('closing refuses all waiters and all new callers, and permits in use can still be released', async () => {
    const permits = semaphore();
    const release = await permits.acquire('ann');
    const waiter = permits.acquire('ann');
    permits.close();
    await expect(waiter).rejects.toThrow('closed');
    await expect(permits.acquire('bob')).rejects.toThrow('closed');
    release();
    expect(permits.gauges('ann')).toMatchObject(idle);
  });

  test('10,000 waiters start in the order of their calls', async () => {
    const permits = semaphore();
    const release = await permits.acquire('ann');
    const started: number[] = [];
    const waiters = Array.from({ length: 10_000 }, (_, n) => permits.run('ann', async () => started.push(n)));
    release();
    await Promise.all(waiters);
    expect(started).toEqual(started.toSorted((a, b) => a - b));
    expect(started).toHaveLength(10_000);
  });
});
