import { hostsOf } from '../../../src/store/database-url.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { readContainerConfig } from './environment.ts';
import { listHosts, readPooler } from './pooler.ts';
import { listMigrations, listServiceWorkloads, listWorkloads, ofKind, type Rule, unless } from './rule.ts';

/** What is special where the tables are distributed over the nodes of a Citus cluster. */

const isSharded = (objects: readonly KubernetesObject[]): boolean =>
  listServiceWorkloads(objects).some(
    ({ main }) => readContainerConfig(objects, main).databaseSharding === 'citus',
  );

/** It alone changes tables, and does so on the coordinator, of which there is one. */
function findMigrationFaults(objects: readonly KubernetesObject[]): string[] {
  return listMigrations(objects).flatMap(({ workload, container }) => {
    const { databaseUrl, databaseSharding } = readContainerConfig(objects, container);
    const hosts = hostsOf(databaseUrl!);
    return [
      ...unless(databaseSharding === 'citus', 'would not distribute the tables'),
      ...unless(hosts.length === 1, `names ${hosts.join(' and ')}: the coordinator alone may migrate`),
    ].map((fault) => `${nameOf(workload.owner)}: ${fault}`);
  });
}

/** Each node is named once. */
function findNodeFaults(objects: readonly KubernetesObject[]): string[] {
  return listWorkloads(objects).flatMap((workload) => {
    const databases = Object.values(readPooler(objects, workload)?.databases ?? {});
    const [first = ''] = databases.map(listHosts);
    return [...unless(new Set(first).size === first.length, 'names a node twice')].map(
      (fault) => `${nameOf(workload.owner)}: ${fault}`,
    );
  });
}

/** A dump through the coordinator holds no one moment of all nodes up while it is made. */
const findDumps = (objects: readonly KubernetesObject[]): string[] =>
  ofKind(objects, 'CronJob').map((job) => `${nameOf(job)}: back all nodes up to one moment (docs/citus.md)`);

export const citusRules: Rule[] = [
  {
    name: 'over a Citus cluster the coordinator migrates, any node serves, and nodes are backed up together',
    check: (objects) =>
      isSharded(objects)
        ? [...findMigrationFaults(objects), ...findNodeFaults(objects), ...findDumps(objects)]
        : [],
  },
];
