import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import common from '../../vitest.config.ts';
import { NotRunReporter } from '../support/not-run-reporter.ts';
import { hasContainerEngine } from '../support/redis-container.ts';
import { SHARDED_TESTS } from './files.ts';

/**
 * The tests of a sharded database, `npm run test:citus`: on the cluster whose coordinator `TEST_CITUS_URL` names, else in
 * containers. Where there is neither they are named as not run.
 */
export default async () => {
  const hasCluster = Boolean(process.env.TEST_CITUS_URL) || (await hasContainerEngine());
  return {
    ...common,
    root: join(import.meta.dirname, '../..'),
    test: {
      ...common.test,
      include: hasCluster ? [...SHARDED_TESTS] : [],
      exclude: [],
      passWithNoTests: true,
      globalSetup: ['test/support/global-setup.ts', 'test/citus/global-setup.ts'],
      // Three servers work for each file, and statements take several times what they take on one.
      maxWorkers: availableParallelism(),
      // Each file makes a database on three servers.
      testTimeout: 90_000,
      hookTimeout: 180_000,
      reporters: ['default', new NotRunReporter(hasCluster ? [] : SHARDED_TESTS)],
    },
  };
};
