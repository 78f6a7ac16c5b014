import type { TestProject } from 'vitest/node';
import { makeShardedTemplate } from '../support/citus.ts';
import { startCluster } from './containers.ts';

/**
 * Provides a cluster for the run: the one that `TEST_CITUS_URL` names, or one in containers. Creates a template
 * database with the current schema on all nodes of the cluster.
 */
export default async function provideCitus(project: TestProject): Promise<() => Promise<void>> {
  const cleanUp = new AsyncDisposableStack();
  const url = process.env.TEST_CITUS_URL || (await startContainers(cleanUp));
  const template = cleanUp.use(await makeShardedTemplate(url));
  project.provide('citusUrl', url);
  project.provide('citusTemplate', template.name);
  return () => cleanUp.disposeAsync();
}

async function startContainers(cleanUp: AsyncDisposableStack): Promise<string> {
  const cluster = await startCluster();
  cleanUp.defer(cluster.stop);
  return cluster.url;
}
