import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that take longest, those that wait for timers between those that compute, so that workers beside each other
 * do not all want the cores. A run that began one of them last would end with one worker at work.
 */
const LONGEST = [
  'long/broken-fleets',
  'long/event-loop',
  'long/hostile-imports',
  'long/plans',
  'long/faults',
  'long/redis-topologies',
  'long/large',
  'long/workers-that-fail',
  'long/embedded',
  'page-quality',
  'attack',
  'import-lease',
  'page-live',
  'replicas',
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
  'spec-4-4-import-export',
  'model',
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? LONGEST.length : rank;
};

/** Begins with the files that take longest, in a fresh clone too, where no run has left its times. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
