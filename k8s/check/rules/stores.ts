import { type KubernetesObject, nameOf } from '../objects.ts';
import { findConfig } from './environment.ts';
import { find, listWorkloads, ofKind, type Rule } from './rule.ts';

/** Left for the migration and the operator. */
const RESERVED_CONNECTIONS = 10;

/** The service's own limit of a statement that is no import. */
const STATEMENT_TIMEOUT_MS = 6_000;

interface Pooler {
  deployment: KubernetesObject;
  settings: Record<string, string>;
  /** By the name that clients use: its line. */
  databases: Record<string, string>;
}

/** The pooler of the overlay with its configuration, or nothing. */
function findPooler(objects: readonly KubernetesObject[]): Pooler | undefined {
  const deployment = find(objects, 'Deployment', 'pgbouncer');
  const map = ofKind(objects, 'ConfigMap').find(({ data }) => data?.['pgbouncer.ini'] !== undefined);
  if (deployment === undefined || map === undefined) return undefined;
  const { databases = {}, pgbouncer = {} } = readIni(map.data['pgbouncer.ini']);
  return { deployment, settings: pgbouncer, databases };
}

/** Reads `[section]` and `key = value` lines. */
export function readIni(text: string): Record<string, Record<string, string>> {
  const sections: Record<string, Record<string, string>> = {};
  let section = '';
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    if (line === '' || line.startsWith(';')) continue;
    const heading = /^\[(\w+)\]$/.exec(line)?.[1];
    if (heading !== undefined) {
      section = heading;
      sections[section] = {};
    }
    const [, key, value] = /^(\w+) *= *(.*)$/.exec(line) ?? [];
    if (key !== undefined) sections[section]![key] = value!;
  }
  return sections;
}

/** Pods of a Deployment at most, with those that a roll-out adds. */
function countPodsAtMost(objects: readonly KubernetesObject[], name: string): number {
  const deployment = find(objects, 'Deployment', name)!;
  const autoscaler = ofKind(objects, 'HorizontalPodAutoscaler').find(
    ({ spec }) => spec.scaleTargetRef.name === name,
  );
  const replicas: number = autoscaler?.spec.maxReplicas ?? deployment.spec.replicas ?? 1;
  const surge = String(deployment.spec.strategy?.rollingUpdate?.maxSurge ?? '25%');
  const added = surge.endsWith('%')
    ? Math.ceil((replicas * Number.parseInt(surge, 10)) / 100)
    : Number(surge);
  return replicas + added;
}

/** Connections that all pods of the service may open together. */
export function countClientConnections(objects: readonly KubernetesObject[]): number {
  return (['api', 'worker'] as const)
    .map((role) => {
      const { databasePoolSize, databaseImportPoolSize } = findConfig(objects, role)!;
      return countPodsAtMost(objects, role) * (databasePoolSize + databaseImportPoolSize);
    })
    .reduce((sum, connections) => sum + connections, 0);
}

const poolSize = (line: string): number => Number(/pool_size=(\d+)/.exec(line)?.[1] ?? 0);

/** A rule about the pooler, where the overlay has one. */
const poolerRule = (
  name: string,
  fault: (pooler: Pooler, objects: readonly KubernetesObject[]) => string[],
): Rule => ({
  name,
  check: (objects) => {
    const pooler = findPooler(objects);
    return pooler ? fault(pooler, objects).map((text) => `${nameOf(pooler.deployment)}: ${text}`) : [];
  },
});

export const storeRules: Rule[] = [
  poolerRule("replicas times pool fit into one pooler's connections", ({ settings }, objects) => {
    const needed = countClientConnections(objects);
    const limit = Number(settings.max_client_conn);
    return needed <= limit ? [] : [`pods may open ${needed} connections, max_client_conn is ${limit}`];
  }),
  poolerRule("the poolers' pools fit into Postgres' connections", ({ deployment, databases }, objects) => {
    const perInstance = Object.values(databases).reduce((sum, line) => sum + poolSize(line), 0);
    const needed = countPodsAtMost(objects, 'pgbouncer') * perInstance + RESERVED_CONNECTIONS;
    const limit = Number(deployment.metadata.annotations?.['bookmarks/postgres-max-connections']);
    const hasSizes = Object.values(databases).every((line) => poolSize(line) > 0);
    return hasSizes && needed <= limit
      ? []
      : [`opens up to ${needed} connections to Postgres, which grants ${limit}`];
  }),
  poolerRule('the pooler pools transactions with prepared statements', ({ settings, deployment }) => {
    const image: string = deployment.spec.template.spec.containers[0].image;
    const [, major, minor] = /:(\d+)\.(\d+)/.exec(image) ?? [];
    return [
      ...(settings.pool_mode === 'transaction' ? [] : ['pool_mode is not transaction']),
      ...(Number(settings.max_prepared_statements) > 0 ? [] : ['max_prepared_statements is not set']),
      ...(Number(major) === 1 && Number(minor) >= 21 ? [] : [`${image} is older than 1.21`]),
      ...(/timeout/.test(settings.ignore_startup_parameters ?? '') ? ['ignores timeouts in silence'] : []),
    ];
  }),
  poolerRule("the pooler's sessions have the service's timeouts", ({ databases }, objects) => {
    const { importWaitSeconds } = findConfig(objects, 'worker')!;
    const expected = { bookmarks: STATEMENT_TIMEOUT_MS, bookmarks_import: importWaitSeconds * 1_000 };
    return Object.entries(expected).flatMap(([name, ms]) => {
      const found = Number(/statement_timeout = (\d+)/.exec(databases[name] ?? '')?.[1]);
      return found === ms ? [] : [`${name}: statement_timeout is ${found}, expected ${ms}`];
    });
  }),
  {
    name: 'Redis evicts nothing and keeps its jobs over a restart',
    check: (objects) =>
      listWorkloads(objects)
        .filter(({ labels }) => labels['app.kubernetes.io/name'] === 'redis')
        .flatMap(({ owner, containers: [container] }) => {
          const line = (container.args ?? []).join(' ');
          return ['--maxmemory-policy noeviction', '--appendonly yes']
            .filter((needed) => !line.includes(needed))
            .map((needed) => `${nameOf(owner)}: lacks ${needed}`);
        }),
  },
];
