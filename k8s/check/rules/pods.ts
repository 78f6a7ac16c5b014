import { nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import {
  type Container,
  endsByItself,
  listServiceWorkloads,
  listWorkloads,
  ofKind,
  type Rule,
  unless,
  type Workload,
} from './rule.ts';

/** A rule about every container; `fault` says what is wrong with one. */
const containerRule = (
  name: string,
  fault: (container: Container, workload: Workload) => string[],
): Rule => ({
  name,
  check: (objects) =>
    listWorkloads(objects).flatMap((workload) =>
      workload.containers.flatMap((container) =>
        fault(container, workload).map((text) => `${nameOf(workload.owner)}: ${container.name}: ${text}`),
      ),
    ),
});

/** A rule about every pod. */
const podRule = (name: string, fault: (workload: Workload) => string[]): Rule => ({
  name,
  check: (objects) =>
    listWorkloads(objects).flatMap((workload) =>
      fault(workload).map((text) => `${nameOf(workload.owner)}: ${text}`),
    ),
});

/** A probe fails in time for the next, and not for one slow response alone. */
function findProbeFaults(container: Container, probe: string): string[] {
  const { periodSeconds = 10, timeoutSeconds = 1, failureThreshold = 3 } = container[probe] ?? {};
  const patience = periodSeconds * failureThreshold;
  return [
    ...unless(
      probe === 'readinessProbe' || timeoutSeconds <= 2 * periodSeconds,
      `${probe} outlasts two periods`,
    ),
    ...unless(probe !== 'livenessProbe' || patience >= 20, `livenessProbe kills after ${patience} s`),
    ...unless(probe !== 'startupProbe' || patience >= 20, `startupProbe kills after ${patience} s`),
  ];
}

/** Longest that a pod which wants no requests may get them still. */
const LONGEST_UNREADY_SECONDS = 30;

export const podRules: Rule[] = [
  podRule('pods are as restricted pod security asks', ({ spec }) => [
    ...unless(spec.securityContext?.runAsNonRoot === true, 'runAsNonRoot is not true'),
    ...unless(spec.securityContext?.runAsUser > 0, 'runs as root, or as nobody knows whom'),
    ...unless(spec.securityContext?.seccompProfile?.type === 'RuntimeDefault', 'no seccomp profile'),
    ...unless(!spec.hostNetwork && !spec.hostPID && !spec.hostIPC, 'shares a namespace of the node'),
    ...unless(
      !(spec.volumes ?? []).some((volume: object) => 'hostPath' in volume),
      'mounts a folder of the node',
    ),
  ]),
  containerRule('containers can gain nothing', ({ securityContext }) => [
    ...unless(securityContext?.allowPrivilegeEscalation === false, 'may escalate privileges'),
    ...unless(securityContext?.capabilities?.drop?.includes('ALL') === true, 'keeps capabilities'),
    ...unless(securityContext?.capabilities?.add === undefined, 'adds capabilities'),
    ...unless(!securityContext?.privileged, 'is privileged'),
  ]),
  containerRule('root file systems are read-only', ({ securityContext }) =>
    unless(securityContext?.readOnlyRootFilesystem === true, 'can write to its root file system'),
  ),
  podRule('pods hold no token of the cluster', ({ spec }) =>
    unless(spec.automountServiceAccountToken === false, 'a token is mounted'),
  ),
  {
    name: 'service accounts mount no token, and the namespace enforces restricted pods',
    check: (objects) => [
      ...ofKind(objects, 'ServiceAccount').flatMap((account) =>
        unless(account.automountServiceAccountToken === false, `${nameOf(account)}: mounts a token`),
      ),
      ...ofKind(objects, 'Namespace').flatMap((namespace) =>
        unless(
          namespace.metadata.labels?.['pod-security.kubernetes.io/enforce'] === 'restricted',
          `${nameOf(namespace)}: pod security is not restricted`,
        ),
      ),
    ],
  },
  containerRule('containers have requests and limits', ({ resources }) =>
    ['requests', 'limits'].flatMap((bound) =>
      ['cpu', 'memory'].flatMap((what) =>
        unless(resources?.[bound]?.[what] !== undefined, `has no ${bound}.${what}`),
      ),
    ),
  ),
  containerRule('requests are at most the limits', ({ resources }) =>
    ['cpu', 'memory'].flatMap((what) => {
      const { [what]: request = 0 } = resources?.requests ?? {};
      const { [what]: limit = request } = resources?.limits ?? {};
      return unless(
        readQuantity(request) <= readQuantity(limit),
        `requests.${what} ${request} is above ${limit}`,
      );
    }),
  ),
  containerRule('probes leave time, and not too much', (container) => {
    const { periodSeconds = 10, failureThreshold = 3 } = container.readinessProbe ?? {};
    const isSlow =
      container.readinessProbe !== undefined && periodSeconds * failureThreshold > LONGEST_UNREADY_SECONDS;
    return [
      ...['startupProbe', 'livenessProbe', 'readinessProbe']
        .filter((probe) => container[probe] !== undefined)
        .flatMap((probe) => findProbeFaults(container, probe)),
      ...unless(!isSlow, `readinessProbe takes ${periodSeconds * failureThreshold} s to say no`),
    ];
  }),
  containerRule('containers that serve have startup, liveness and readiness probes', (container, workload) =>
    endsByItself(workload) || (workload.spec.initContainers ?? []).includes(container)
      ? []
      : ['startupProbe', 'livenessProbe', 'readinessProbe'].flatMap((probe) =>
          unless(container[probe] !== undefined, `has no ${probe}`),
        ),
  ),
  containerRule('images have a fixed tag', ({ image }) =>
    unless(/:[\w.-]+$/.test(image) && !image.endsWith(':latest'), `${image} has no fixed tag`),
  ),
  {
    name: 'liveness asks the process alone, readiness whether it wants requests',
    check: (objects) =>
      listServiceWorkloads(objects)
        .filter(({ owner }) => owner.kind !== 'Job')
        .flatMap(({ owner, main: container }) => [
          ...['startupProbe', 'livenessProbe'].flatMap((probe) =>
            unless(container[probe]?.httpGet?.path === '/livez', `${nameOf(owner)}: ${probe} is not /livez`),
          ),
          ...unless(
            container.readinessProbe?.httpGet?.path === '/readyz',
            `${nameOf(owner)}: readinessProbe is not /readyz`,
          ),
        ]),
  },
  {
    name: 'api, worker and migration are one image',
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
