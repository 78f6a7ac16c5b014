import { hostsOf } from '../../../src/store/driver/url.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { findConfig, readContainerConfig } from './environment.ts';
import { listHosts, readPooler } from './pooler.ts';
import { listMigrations, listServiceWorkloads, listWorkloads, ofKind, type Rule, unless } from './rule.ts';

/** Rules for overlays whose tables are distributed over the nodes of a Citus cluster. */

const isSharded = (objects: readonly KubernetesObject[]): boolean =>
  listServiceWorkloads(objects).some(
    ({ main }) => readContainerConfig(objects, main).databaseSharding === 'citus',
  );

/**
 * Finds migrations that do not distribute the tables, and migrations that name several hosts instead of only the
 * coordinator.
 */
function findMigrationFaults(objects: readonly KubernetesObject[]): string[] {
  return listMigrations(objects).flatMap(({ workload, container }) => {
    const { databaseUrl, databaseSharding } = readContainerConfig(objects, container);
    const hosts = hostsOf(databaseUrl!);
    return [
      ...unless(databaseSharding === 'citus', 'would not distribute the tables'),
      ...unless(hosts.length === 1, `names ${hosts.join(' and ')}: only the coordinator may migrate`),
    ].map((fault) => `${nameOf(workload.owner)}: ${fault}`);
  });
}

/**
 * Finds nodes that are listed twice, and nodes without a line of their own in PgBouncer's `[databases]`.
 * `DATABASE_NODES` gives the names of these lines.
 */
function findNodeFaults(objects: readonly KubernetesObject[]): string[] {
  const { databaseNodes } = findConfig(objects, 'api')!;
  return listWorkloads(objects).flatMap((workload) => {
    const pooler = readPooler(objects, workload);
    if (pooler === undefined) return [];
    const hosts = listHosts(pooler.databases.bookmarks ?? '');
    const nameOfLine = (host: string) => databaseNodes!.split('/')[1]!.replaceAll('{host}', host);
    const missing = hosts.filter(
      (host) => databaseNodes && listHosts(pooler.databases[nameOfLine(host)] ?? '').join() !== host,
    );
    return [
      ...unless(new Set(hosts).size === hosts.length, 'names a node twice'),
      ...missing.map((host) => `has no database for the node ${host} alone, which DATABASE_NODES names`),
    ].map((fault) => `${nameOf(workload.owner)}: ${fault}`);
  });
}

/** Refuses scheduled backups, because a dump through the coordinator is not a consistent snapshot of all nodes. */
const findDumps = (objects: readonly KubernetesObject[]): string[] =>
  ofKind(objects, 'CronJob').map(
    (job) => `${nameOf(job)}: back up all nodes to the same moment (docs/citus.md)`,
  );

export const citusRules: Rule[] = [
  {
    name: 'on a Citus cluster the coordinator migrates, any node serves, and nodes are backed up together',
    check: (objects) =>
      isSharded(objects)
        ? [...findMigrationFaults(objects), ...findNodeFaults(objects), ...findDumps(objects)]
        : [],
  },
];
