import { type Config, readConfig } from '../../../src/config.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { watchReads } from '../watch-reads.ts';
import { listServiceWorkloads, ofKind, type Rule, type Workload } from './rule.ts';

/** Secrets are not in the manifests; these stand for what they hold. */
const PLACEHOLDERS: Record<string, string> = {
  DATABASE_URL: 'postgres://user:password@pgbouncer:6432/bookmarks',
  DATABASE_IMPORT_URL: 'postgres://user:password@pgbouncer:6432/bookmarks_import',
  REDIS_URL: 'redis://redis:6379',
};

/** The environment that a workload's first container gets: its ConfigMaps, then its own variables. */
export function readEnvironment(
  objects: readonly KubernetesObject[],
  workload: Workload,
): Record<string, string> {
  const container = workload.containers[0];
  const maps = (container.envFrom ?? []).map(({ configMapRef }: { configMapRef: { name: string } }) => {
    const map = ofKind(objects, 'ConfigMap').find(({ metadata }) => metadata.name === configMapRef.name);
    return map?.data ?? {};
  });
  const own = (container.env ?? []).map(({ name, value }: { name: string; value?: string }) => [
    name,
    value ?? PLACEHOLDERS[name] ?? '',
  ]);
  return { ...Object.assign({}, ...maps), ...Object.fromEntries(own) };
}

/** What the service makes of that environment; throws its `ConfigError`. */
export const readWorkloadConfig = (objects: readonly KubernetesObject[], workload: Workload): Config =>
  readConfig(readEnvironment(objects, workload));

/** The configuration of the pods of one role, where the overlay has them. */
export function findConfig(objects: readonly KubernetesObject[], role: 'api' | 'worker'): Config | undefined {
  const workload = listServiceWorkloads(objects).find(({ owner }) => owner.metadata.name === role);
  return workload && readWorkloadConfig(objects, workload);
}

export const environmentRules: Rule[] = [
  {
    name: 'the service starts with the environment, and knows every variable in it',
    check: (objects) =>
      listServiceWorkloads(objects).flatMap((workload) => {
        const { proxy, listUnread } = watchReads(readEnvironment(objects, workload));
        try {
          readConfig(proxy as Record<string, string>);
        } catch (error) {
          return [`${nameOf(workload.owner)}: ${(error as Error).message}`];
        }
        return listUnread().map((name) => `${nameOf(workload.owner)}: the service reads no ${name}`);
      }),
  },
  {
    name: 'ports are those that the service listens on',
    check: (objects) =>
      listServiceWorkloads(objects)
        .filter(({ owner }) => owner.kind === 'Deployment')
        .flatMap((workload) => {
          const { port, metricsPort } = readWorkloadConfig(objects, workload);
          const ports = workload.containers[0].ports ?? [];
          const isThere = (name: string, number: number | undefined) =>
            ports.some(
              (p: { name: string; containerPort: number }) => p.name === name && p.containerPort === number,
            );
          return [
            ...(isThere('http', port) ? [] : [`${nameOf(workload.owner)}: port http is not PORT ${port}`]),
            ...(isThere('metrics', metricsPort)
              ? []
              : [`${nameOf(workload.owner)}: port metrics is not METRICS_PORT ${metricsPort}`]),
          ];
        }),
  },
];
