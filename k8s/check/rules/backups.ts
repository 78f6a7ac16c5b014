import { type KubernetesObject, nameOf } from '../objects.ts';
import { readEnvironment, readSecret } from './environment.ts';
import { listWorkloads, type Rule, unless, type Workload } from './rule.ts';

function findPlaceFaults({ spec, main }: Workload): string[] {
  const folder: string | undefined = main.command?.find((word: string) => /^\/(?!etc\/)/.test(word));
  const mount = main.volumeMounts?.find(({ mountPath }: { mountPath: string }) => mountPath === folder);
  const volume = spec.volumes?.find(({ name }: { name: string }) => name === mount?.name);
  return unless(
    volume?.persistentVolumeClaim !== undefined,
    `what it writes to ${folder} is lost with its pod`,
  );
}

function findRoleFaults(objects: readonly KubernetesObject[], { main }: Workload): string[] {
  const url = URL.parse(readEnvironment(objects, main).DATABASE_URL ?? '');
  const { DATABASE_URL = '', MIGRATE_DATABASE_URL = '' } = readSecret(objects, 'connections') ?? {};
  const others = [DATABASE_URL, MIGRATE_DATABASE_URL].map((text) => URL.parse(text));
  const owner = others[1];
  return [
    ...unless(
      url !== null && others.every((other) => other?.username !== url.username),
      'has a role that writes',
    ),
    ...unless(
      url?.host === owner?.host && url?.pathname === owner?.pathname,
      'leads to another database, or through the pooler',
    ),
    ...unless(
      url?.searchParams.get('sslmode') === 'verify-full',
      "does not verify Postgres' identity (verify-full)",
    ),
  ].map((fault) => `its DATABASE_URL ${fault}`);
}

export const backupRules: Rule[] = [
  {
    name: 'a scheduled backup reads only, and outlives its pod',
    check: (objects) =>
      listWorkloads(objects)
        .filter(({ owner }) => owner.kind === 'CronJob')
        .flatMap((workload) =>
          [...findPlaceFaults(workload), ...findRoleFaults(objects, workload)].map(
            (fault) => `${nameOf(workload.owner)}: ${fault}`,
          ),
        ),
  },
];
