import { createHistogram } from 'node:perf_hooks';
import { expect, onTestFinished, test } from 'vitest';
import { Overload } from '../src/flow/overload.ts';
import { useService } from './support/service.ts';

// Tests when a replica refuses requests early, and when it accepts them again. observability.test.ts tests how a
// replica reports that it is overloaded.

const service = useService();

/** What an `Overload` watches, with limits of this test. */
const watched = () => {
  const { database: pool, outboundBacklog, received } = service.context;
  return {
    limits: { eventLoopMs: 100, poolWaitMs: 0 },
    pool,
    outboundBacklog,
    received,
    onRefused: () => {},
  };
};

test('a replica considers only the delays of the last half second', async () => {
  const delays = createHistogram();
  const overload = new Overload(watched(), delays);
  onTestFinished(() => overload.close());
  const record = (ms: number, times: number) => {
    for (let n = 0; n < times; n += 1) delays.record(ms * 1e6);
  };
  const isRefused = () => {
    try {
      overload.refuse();
      return false;
    } catch (error) {
      expect((error as Error).message).toBe('the service is overloaded');
      return true;
    }
  };
  record(1, 10_000);
  await expect.poll(() => delays.count).toBe(0);
  expect(isRefused()).toBe(false);
  record(2_000, 100);
  await expect.poll(isRefused).toBe(true);
  record(1, 1);
  await expect.poll(isRefused).toBe(false);
});

test('while the bodies of all users together exceed their limit, only a body of at least 64 KiB is refused', () => {
  const { received } = service.context;
  const overload = new Overload(watched());
  onTestFinished(() => overload.close());
  const release = received.hold(1, 1e12);
  onTestFinished(release);
  expect(() => overload.refuseBody(2, 65_535)).not.toThrow();
  expect(() => overload.refuseBody(2, 65_536)).toThrow('the service is overloaded');
});
