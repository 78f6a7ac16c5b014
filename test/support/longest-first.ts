import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The test files that take longest, in the order in which they start. Files that wait for timers alternate with files
 * that compute, so that not all workers need the cores at the same time. If a long file began last, the run would end
 * with only one busy worker.
 */
const LONGEST = [
  'long/broken-fleets',
  'long/two-way',
  'long/generated-clients',
  'long/event-loop',
  'long/hostile-imports',
  'long/plans',
  'long/faults',
  'long/redis-topologies',
  'long/large',
  'long/k8s-rotate',
  'long/operation',
  'long/workers-that-fail',
  'long/alert-mutations',
  'long/embedded',
  'page-quality',
  'attack',
  'page-live',
  'page-settings',
  'k8s-breakages',
  'process',
  'page-bookmarks',
  'migrations',
  'import-queue',
  'page-sign-in',
  'rate-limit',
  'page-search',
  'idle-polls',
  'pages',
  'k8s-release',
  'brute-force',
  'redis-faults',
  'import-body',
  'spec-4-4-import-export',
  'model',
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? LONGEST.length : rank;
};

/** Starts the longest files first. The list is fixed, so that it also works in a fresh clone without recorded times. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }

  /** Deals the files to the parts of `--shard`, longest first, so that all parts take about equally long. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard!;
    const sorted = files
      .toSorted((one, other) => one.moduleId.localeCompare(other.moduleId))
      .toSorted((one, other) => rankOf(one) - rankOf(other));
    return sorted.filter((_, n) => n % count === index - 1);
  }
}
