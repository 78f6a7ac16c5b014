import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { findMemoryFolder } from './test/support/memory-folder.ts';
import { NotRunReporter } from './test/support/not-run-reporter.ts';

// Each worker loads the whole service. With this cache, only the first worker compiles it.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/tests');

const memoryFolder = findMemoryFolder();
if (memoryFolder !== undefined) process.env.TMPDIR ??= memoryFolder;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // These tests need a cluster and have their own configuration.
    exclude: ['test/citus/**'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // The test files of a worker share the worker's process, which loads the service once. So a file must leave nothing
    // behind that another file would notice.
    isolate: false,
    // Tests spend about half of their time waiting for servers and timers, so two workers per core keep all cores busy.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongestFirst },
    // These limits only end tests that hang. They leave room for a slow machine, and for hooks that install programs.
    testTimeout: 300_000,
    hookTimeout: 600_000,
    // `expect.poll` waits for conditions that no event reports.
    expect: { poll: { timeout: 120_000, interval: 10 } },
    reporters: ['default', new NotRunReporter()],
    // Node strips the types, as in production, so a file that Node cannot run fails here too.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
