import { nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import { type Container, listServiceWorkloads, listWorkloads, ofKind, type Rule, unless } from './rule.ts';

/** Makes a rule about every container. `fault` returns the faults of one container. */
const containerRule = (name: string, fault: (container: Container) => string[]): Rule => ({
  name,
  check: (objects) =>
    listWorkloads(objects).flatMap((workload) =>
      workload.containers.flatMap((container) =>
        fault(container).map((text) => `${nameOf(workload.owner)}: ${container.name}: ${text}`),
      ),
    ),
});

interface Volume {
  name: string;
  secret?: { defaultMode?: number };
  persistentVolumeClaim?: object;
}

/** Returns whether everybody may read the files of a Secret's volume. Kubernetes' default mode is 0644. */
const isReadable = ({ defaultMode = 0o644 }: { defaultMode?: number }): boolean => (defaultMode & 0o4) !== 0;

export const podRules: Rule[] = [
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
  containerRule('images have a fixed tag', ({ image }) =>
    unless(/:[\w.-]+$/.test(image) && !image.endsWith(':latest'), `${image} has no fixed tag`),
  ),
  {
    name: "a pod's user can read its mounted files",
    check: (objects) =>
      listWorkloads(objects).flatMap(({ owner, spec }) => {
        const volumes: Volume[] = spec.volumes ?? [];
        const closed = volumes.filter(
          ({ secret, persistentVolumeClaim }) =>
            persistentVolumeClaim !== undefined || (secret !== undefined && !isReadable(secret)),
        );
        const isRight = closed.length === 0 || spec.securityContext?.fsGroup !== undefined;
        return unless(isRight, `${nameOf(owner)}: without fsGroup it cannot read ${closed[0]?.name}`);
      }),
  },
  {
    name: 'liveness checks only the process, readiness whether it accepts requests',
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
