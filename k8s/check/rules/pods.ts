import { nameOf } from '../objects.ts';
import { listServiceWorkloads, listWorkloads, ofKind, type Rule, type Workload } from './rule.ts';

/** A rule about every container; `fault` says what is wrong with one. */
// biome-ignore lint/suspicious/noExplicitAny: checked by the schema
const containerRule = (name: string, fault: (container: any, workload: Workload) => string[]): Rule => ({
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

const unless = (holds: boolean, text: string): string[] => (holds ? [] : [text]);

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
      ...unless(ofKind(objects, 'Namespace').length === 1, 'there is no Namespace'),
    ],
  },
  containerRule('containers have requests and limits', ({ resources }) =>
    ['requests', 'limits'].flatMap((bound) =>
      ['cpu', 'memory'].flatMap((what) =>
        unless(resources?.[bound]?.[what] !== undefined, `has no ${bound}.${what}`),
      ),
    ),
  ),
  containerRule(
    'containers that serve have startup, liveness and readiness probes',
    (container, { owner }) =>
      owner.kind === 'Job'
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
        .flatMap(({ owner, containers: [container] }) => [
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
        listServiceWorkloads(objects).map(({ containers: [container] }) => container.image),
      );
      return unless(images.size === 1, `several images: ${[...images].join(', ')}`);
    },
  },
];
