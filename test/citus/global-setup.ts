import type { TestProject } from 'vitest/node';

/** Provides the cluster of the run: the one whose coordinator `TEST_CITUS_URL` names. */
export default async function provideCitus(project: TestProject): Promise<void> {
  project.provide('citusUrl', process.env.TEST_CITUS_URL);
}
