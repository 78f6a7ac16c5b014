import { nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import {
  type Container,
  isOfService,
  listServiceWorkloads,
  listWorkloads,
  ofKind,
  type Rule,
  unless,
  type Workload,
} from './rule.ts';

interface Volume {
  name: string;
  secret?: { defaultMode?: number };
  persistentVolumeClaim?: object;
}

/** Returns whether everybody may read the files of a Secret's volume. Kubernetes' default mode is 0644. */
const isReadable = ({ defaultMode = 0o644 }: { defaultMode?: number }): boolean => (defaultMode & 0o4) !== 0;

/** Finds what the Pod Security Standard `restricted` forbids, a writable root file system, and a mounted token. */
function findRightsFaults({ spec, containers }: Workload): string[] {
  const { runAsNonRoot, seccompProfile } = spec.securityContext ?? {};
  return [
    ...unless(runAsNonRoot === true, 'may run as root'),
    ...unless(seccompProfile?.type === 'RuntimeDefault', 'has no seccomp profile'),
    ...unless(spec.automountServiceAccountToken === false, 'mounts a token'),
    ...containers.flatMap(({ name, securityContext }: Container) => {
      const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = securityContext ?? {};
      return [
        ...unless(allowPrivilegeEscalation === false, `${name} may gain privileges`),
        ...unless(readOnlyRootFilesystem === true, `${name} may write to its root file system`),
        ...unless(capabilities?.drop?.[0] === 'ALL', `${name} keeps capabilities`),
      ];
    }),
  ];
}

function findResourceFaults({ containers }: Workload): string[] {
  return containers.flatMap(({ name, resources }: Container) =>
    ['cpu', 'memory'].flatMap((what) => {
      const { [what]: request } = resources?.requests ?? {};
      const { [what]: limit } = resources?.limits ?? {};
      if (request === undefined || limit === undefined)
        return [`${name} has no request or no limit of ${what}`];
      return unless(
        readQuantity(request) <= readQuantity(limit),
        `${name}: requests.${what} is above the limit`,
      );
    }),
  );
}

/** Finds missing probes of servers. In the service's pods, only readiness may depend on more than the process. */
function findProbeFaults(workload: Workload): string[] {
  const { owner, main } = workload;
  if (owner.kind !== 'Deployment' && owner.kind !== 'StatefulSet') return [];
  const expected = { startupProbe: '/livez', livenessProbe: '/livez', readinessProbe: '/readyz' };
  return Object.entries(expected).flatMap(([probe, path]) => [
    ...unless(main[probe] !== undefined, `has no ${probe}`),
    ...unless(!isOfService(workload) || main[probe]?.httpGet?.path === path, `${probe} is not ${path}`),
  ]);
}

/** Finds volumes with files that the pod's user cannot read. */
function findVolumeFaults({ spec }: Workload): string[] {
  const closed = ((spec.volumes ?? []) as Volume[]).find(
    ({ secret, persistentVolumeClaim }) =>
      persistentVolumeClaim !== undefined || (secret !== undefined && !isReadable(secret)),
  );
  const isRight = closed === undefined || spec.securityContext?.fsGroup !== undefined;
  return unless(isRight, `without fsGroup it cannot read ${closed?.name}`);
}

/** Makes a rule about every workload. */
const workloadRule = (name: string, findFaults: (workload: Workload) => string[]): Rule => ({
  name,
  check: (objects) =>
    listWorkloads(objects).flatMap((workload) =>
      findFaults(workload).map((fault) => `${nameOf(workload.owner)}: ${fault}`),
    ),
});

/** Also applies to pods that operators create by hand. */
export const restrictedRule: Rule = workloadRule(
  'pods are restricted, with a read-only file system and no token',
  findRightsFaults,
);

export const podRules: Rule[] = [
  restrictedRule,
  workloadRule(
    'containers have requests and limits, and requests are at most the limits',
    findResourceFaults,
  ),
  workloadRule('servers have probes, and liveness checks only the process', findProbeFaults),
  workloadRule("a pod's user can read its mounted files", findVolumeFaults),
  workloadRule('images have a fixed tag', ({ containers }) =>
    containers.flatMap(({ image }: Container) =>
      unless(/:[\w.-]+$/.test(image) && !image.endsWith(':latest'), `${image} has no fixed tag`),
    ),
  ),
  {
    name: 'the namespace enforces restricted pods, and denies traffic by default',
    check: (objects) => [
      ...ofKind(objects, 'Namespace').flatMap((namespace) =>
        unless(
          namespace.metadata.labels?.['pod-security.kubernetes.io/enforce'] === 'restricted',
          `${nameOf(namespace)}: pod security is not restricted`,
        ),
      ),
      ...unless(
        ofKind(objects, 'NetworkPolicy').some(
          ({ spec }) =>
            Object.keys(spec.podSelector).length === 0 && spec.policyTypes?.join() === 'Ingress,Egress',
        ),
        'no NetworkPolicy denies all traffic by default',
      ),
    ],
  },
  {
    name: 'api, worker and migration use one image',
    check: (objects) => {
      const images = new Set(
        listServiceWorkloads(objects).flatMap(({ containers }) =>
          containers.map(({ image }: Container) => image),
        ),
      );
      return unless(images.size === 1, `several images: ${[...images].join(', ')}`);
    },
  },
];
