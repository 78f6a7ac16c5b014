import type { TestProject } from 'vitest/node';
import { startCluster } from './containers.ts';

/** Provides the cluster of the run: the one whose coordinator `TEST_CITUS_URL` names, or one in containers. */
export default async function provideCitus(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const url = process.env.TEST_CITUS_URL;
  project.provide('citusUrl', url);
  // Without either no test is part of the run.
  if (url || project.config.include.length === 0) return undefined;
  const cluster = await startCluster();
  project.provide('citusUrl', cluster.url);
  return cluster.stop;
}
