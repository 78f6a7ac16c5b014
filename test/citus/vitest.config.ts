import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import common from '../../vitest.config.ts';
import { hasContainerEngine } from '../support/containers.ts';
import { NotRunReporter } from '../support/not-run-reporter.ts';
import { SHARDED_TESTS } from './files.ts';

const MATCHES_NOTHING = /(?!)/;

/**
 * Runs the tests of a sharded database: `npm run test:citus`. They use the cluster whose coordinator's url is
 * `TEST_CITUS_URL`, or start one in containers. If neither is possible, every test is skipped and counted as skipped.
 */
export default async () => {
  const hasCluster = Boolean(process.env.TEST_CITUS_URL) || (await hasContainerEngine());
  if (!hasCluster) {
    console.log(
      'Skipped: these tests need a Citus cluster. Start Docker, or a cluster on this machine (Debian and Ubuntu):\n' +
        '  curl https://install.citusdata.com/community/deb.sh | sudo bash && sudo apt-get install postgresql-17-citus-13.1\n' +
        '  test/citus/start-nodes.sh /usr/lib/postgresql/17/bin\n' +
        '  TEST_CITUS_URL=postgres://postgres@127.0.0.1:7800/postgres npm run test:citus',
    );
  }
  return {
    ...common,
    root: join(import.meta.dirname, '../..'),
    test: {
      ...common.test,
      include: [...SHARDED_TESTS],
      exclude: [],
      ...(hasCluster ? {} : { testNamePattern: MATCHES_NOTHING }),
      globalSetup: hasCluster ? ['test/support/global-setup.ts', 'test/citus/global-setup.ts'] : [],
      // Each test file uses three servers. Statements take several times longer than on one server, so the numbers of
      // files and of tests that run at the same time are limited.
      maxWorkers: availableParallelism(),
      maxConcurrency: 2,
      reporters: ['default', ...(hasCluster ? [new NotRunReporter()] : [])],
    },
  };
};
