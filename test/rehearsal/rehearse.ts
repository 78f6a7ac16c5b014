import { execFileSync } from 'node:child_process';
import { readOverlay } from '../../k8s/check/overlay.ts';
import { find } from '../../k8s/check/rules/rule.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { provide } from '../support/programs.ts';
import { createPrincipal } from '../support/users.ts';
import { Cluster } from './cluster.ts';
import { Operator } from './operator.ts';
import { findReleaseBefore, makeImages } from './releases.ts';
import { install } from './scenes/install.ts';
import { backUp, restore } from './scenes/restore.ts';
import { rotate } from './scenes/rotate.ts';
import { rollBack, upgrade } from './scenes/upgrade.ts';
import { useOperatorCommands } from './scenes/users.ts';
import { startManagedPostgres, startManagedRedis } from './servers.ts';
import { require, type Stage, withoutPrepare } from './stage.ts';
import { Traffic } from './traffic.ts';

/** Rehearses the lifecycle of an installation with the documents' commands, while clients send requests. */

/** The number of clients that add, poll and import. */
const CLIENTS = 12;

/** The first version of PgBouncer that supports prepared statements. */
const PREPARES_SINCE = [1, 21] as const;

/** Returns the number of connections that Postgres grants, according to the manifests. */
const readConnections = (): number =>
  Number(
    find(readOverlay('production'), 'Deployment', 'pgbouncer')!.metadata.annotations![
      'bookmarks/postgres-max-connections'
    ],
  );

async function canPrepare(): Promise<boolean> {
  const version = execFileSync(await provide('pgbouncer'), ['--version'], { encoding: 'utf8' });
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version)!.map(Number);
  return major! > PREPARES_SINCE[0] || minor! >= PREPARES_SINCE[1];
}

async function makeUsers(url: string) {
  const database = await openDatabase({ url, max: 1 });
  try {
    return await Promise.all(
      Array.from({ length: CLIENTS }, () => createPrincipal(database, { premium: true })),
    );
  } finally {
    await database.close(0);
  }
}

/** Runs all scenes in order. Rejects if the outcome of a step differs from what the documents say. */
export async function rehearse(scale: number, note: (line: string) => void): Promise<void> {
  const connections = readConnections();
  await using stack = new AsyncDisposableStack();
  const passwords = {
    owner: 'ownerPassword',
    serving: 'servingPassword',
    backup: 'backupPassword',
    metrics: 'metricsPassword',
    redis: 'redisPassword',
  };
  const postgres = stack.use(await startManagedPostgres(connections));
  const redis = stack.use(await startManagedRedis());
  const before = findReleaseBefore();
  note(`the release before: ${before ?? 'none in the history with this schema; the same code again'}`);
  const images = makeImages(before);
  const cluster = stack.use(await Cluster.open(images, scale));
  const operator = stack.use(await Operator.open(cluster));
  if (!(await canPrepare())) {
    withoutPrepare(operator);
    note('this PgBouncer is older than 1.21: without prepared statements, as the configuration table says');
  }
  const traffic = new Traffic(cluster.gateway.origin);
  const stage: Stage = { images, cluster, operator, postgres, redis, passwords, traffic, note };
  const scene = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
    traffic.during = name;
    const begin = performance.now();
    const result = await act();
    const seconds = Math.round((performance.now() - begin) / 1_000);
    const [served, retried] = [traffic.served, traffic.retried].map((counts) => counts.get(name) ?? 0);
    note(`${name}: ${seconds} s, ${served} requests served, ${retried} at a retry`);
    return result;
  };

  await scene('install', () => install(stage));
  await scene('users', () => useOperatorCommands(stage));
  traffic.enter(await makeUsers(postgres.urlOfAdmin('bookmarks')));
  traffic.start();
  await scene('upgrade', () => upgrade(stage));
  await scene('roll back', () => rollBack(stage));
  await scene('rotate', () => rotate(stage));
  const acknowledged = await scene('back up', () => backUp(stage));
  await scene('restore', () => restore(stage, acknowledged, connections));
  checkPods(stage);
}

/** Checks that every pod ended within its grace period without being killed, and stayed below its memory limit. */
function checkPods({ cluster, note }: Stage): void {
  for (const { pod, exit, isKilled, peakBytes, limitBytes } of cluster.ends) {
    require(!isKilled && exit === 0, `${pod} to end in order, got ${isKilled ? 'a kill' : exit}`);
    require(peakBytes < limitBytes, `${pod} below ${limitBytes} bytes of memory, got ${peakBytes}`);
  }
  const [largest] = cluster.ends.map(({ peakBytes }) => peakBytes).sort((one, other) => other - one);
  note(
    `pods that ended in order: ${cluster.ends.length}; the largest had ${Math.round(largest! / 2 ** 20)} MiB`,
  );
}
