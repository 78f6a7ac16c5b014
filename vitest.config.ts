import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { NotRunReporter } from './test/support/not-run-reporter.ts';

// Every worker loads the service anew: the next one finds it stripped and compiled.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/tests');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They have a configuration of their own, with a cluster.
    exclude: ['test/citus/**'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Tests wait for servers and timers as long as they compute: two workers for each core use it to the full.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What sends no event is asked for; a busy machine may take long.
    expect: { poll: { timeout: 25_000, interval: 10 } },
    reporters: ['default', new NotRunReporter()],
    // Node strips the types, as it does in production: a file that it cannot run fails here too.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
