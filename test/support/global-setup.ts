import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/store/schema/migrations.ts';
import { hasContainerEngine, usesContainers } from './containers.ts';
import { dropDatabasesOf, runOn, withDatabase } from './database.ts';
import { removeFolder } from './folders.ts';
import { makePostgresTemplate, startPostgres } from './postgres.ts';
import { killNotedProcesses } from './processes.ts';
import { findProgram, provide } from './programs.ts';
import { useRunDir } from './run.ts';
import { silentLog } from './silent-log.ts';
import { makeRunFolder, sweepKilledRuns } from './sweep.ts';

/**
 * Provides the Postgres of the run, with a migrated template database, and a way to start Redis. The Postgres is the
 * one of `TEST_DATABASE_URL`, or else an embedded one. With `TEST_CONTAINERS=1` it is a container, and so is Redis. If there is no way to start Redis, the run ends with a message
 * that says what to install.
 */
export default async function provideServers(project: TestProject): Promise<() => Promise<void>> {
  sweepKilledRuns();
  const cleanUp = new AsyncDisposableStack();
  endOnSignals(cleanUp);
  try {
    const runDir = makeRunFolder();
    cleanUp.defer(() => removeFolder(runDir));
    cleanUp.defer(() => reportLeftProcesses(runDir));
    project.provide('runDir', runDir);
    await provideRedis(project);
    await provideDatabase(project, runDir, cleanUp);
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
  return () => cleanUp.disposeAsync();
}

/**
 * On Ctrl-C, Vitest exits immediately, without teardown. The servers would go on running, so this handler ends them.
 */
function endOnSignals(cleanUp: AsyncDisposableStack): void {
  const end = () => void cleanUp.disposeAsync().finally(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end);
  cleanUp.defer(() => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.removeListener(signal, end);
  });
}

function reportLeftProcesses(runDir: string): void {
  const left = killNotedProcesses(runDir);
  if (left.length > 0) console.error(`tests left processes behind, which were killed: ${left.join(', ')}`);
}

async function provideRedis(project: TestProject): Promise<void> {
  const redisUrl = process.env.TEST_REDIS_URL;
  const hasContainers = usesContainers() || (!findProgram('redis') && (await hasContainerEngine()));
  project.provide('redisUrl', redisUrl);
  project.provide('redisContainers', hasContainers);
  if (!redisUrl && !hasContainers) await provide('redis');
}

async function provideDatabase(
  project: TestProject,
  runDir: string,
  cleanUp: AsyncDisposableStack,
): Promise<void> {
  const postgres = await openPostgres(runDir);
  cleanUp.defer(() => postgres.stop());
  const template = `bookmark_test_${randomBytes(4).toString('hex')}`;
  cleanUp.defer(() => dropDatabasesOf(template, postgres.url));
  await createTemplate(postgres.url, template);
  project.provide('postgresUrl', postgres.url);
  project.provide('templateDatabase', template);
}

async function openPostgres(runDir: string): Promise<{ url: string; stop(): Promise<void> }> {
  const url = process.env.TEST_DATABASE_URL;
  if (url) return { url, stop: async () => {} };
  useRunDir(runDir);
  if (!usesContainers()) await makePostgresTemplate();
  return startPostgres();
}

async function createTemplate(serverUrl: string, name: string): Promise<void> {
  await runOn(serverUrl, `create database ${name}`);
  try {
    await migrate({ url: withDatabase(serverUrl, name), log: silentLog });
  } catch (error) {
    // Only the message is passed on, because the driver's error contains the text of whole migrations.
    throw new Error(`the tests' database cannot be migrated: ${(error as Error).message}`);
  }
}
