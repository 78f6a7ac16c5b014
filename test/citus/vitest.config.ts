import { join } from 'node:path';
import common from '../../vitest.config.ts';
import { SHARDED_TESTS } from './files.ts';

const root = join(import.meta.dirname, '../..');

/** The tests of the contract against a sharded database: `npm run test:citus`. */
export default {
  ...common,
  root,
  test: {
    ...common.test,
    include: [...SHARDED_TESTS, 'test/citus/*.test.ts'],
    globalSetup: [...(common.test!.globalSetup as string[]), 'test/citus/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
};
