import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import common from '../../vitest.config.ts';

/**
 * Runs the long tests: `npm run test:long`. Each file has a process of its own, because some files measure memory and
 * CPU time. The time limit of a test leaves room for a machine that is several times slower than a quiet one.
 */
export default {
  ...common,
  root: join(import.meta.dirname, '../..'),
  test: {
    ...common.test,
    include: ['test/long/**/*.test.ts'],
    isolate: true,
    // More workers would make the tests that fork many processes wait for each other.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 1_200_000,
  },
};
