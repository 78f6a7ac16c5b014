import { type KubernetesObject, nameOf, walk } from '../objects.ts';
import { find, listWorkloads, ofKind, type Rule, selects } from './rule.ts';

/** Made outside of the manifests. */
const SECRETS_FROM_OUTSIDE = ['connections', 'pgbouncer'];

interface Port {
  name?: string;
  port?: number;
  targetPort?: string;
}

const hasLabels = (labels: Record<string, string>, objects: readonly KubernetesObject[]) =>
  listWorkloads(objects).some((workload) => selects({ matchLabels: labels }, workload.labels));

function checkService(service: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const pods = listWorkloads(objects).filter(({ labels }) =>
    selects({ matchLabels: service.spec.selector }, labels),
  );
  if (pods.length === 0) return [`${nameOf(service)}: selects no pods`];
  return service.spec.ports
    .filter(({ targetPort }: Port) =>
      pods.some(
        ({ containers: [container] }) => !container.ports?.some(({ name }: Port) => name === targetPort),
      ),
    )
    .map(({ targetPort }: Port) => `${nameOf(service)}: its pods have no port ${targetPort}`);
}

function checkRoute(route: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  return route.spec.rules
    .flatMap(({ backendRefs }: { backendRefs: { name: string; port: number }[] }) => backendRefs)
    .filter(
      ({ name, port }: { name: string; port: number }) =>
        !find(objects, 'Service', name)?.spec.ports.some((p: Port) => p.port === port),
    )
    .map(
      ({ name, port }: { name: string; port: number }) =>
        `${nameOf(route)}: there is no Service ${name}:${port}`,
    );
}

function checkMonitor(monitor: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const services = ofKind(objects, 'Service').filter(({ metadata }) =>
    selects(monitor.spec.selector, metadata.labels),
  );
  return monitor.spec.endpoints
    .filter(({ port }: { port: string }) =>
      ['api', 'worker'].some(
        (role) =>
          !services.some(
            ({ metadata, spec }) => metadata.name === role && spec.ports.some((p: Port) => p.name === port),
          ),
      ),
    )
    .map(
      ({ port }: { port: string }) => `${nameOf(monitor)}: does not find the port ${port} of api and worker`,
    );
}

function checkMentions(owner: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const secrets = [
    ...SECRETS_FROM_OUTSIDE,
    ...ofKind(objects, 'Secret').map(({ metadata }) => metadata.name),
  ];
  const maps = ofKind(objects, 'ConfigMap').map(({ metadata }) => metadata.name);
  // biome-ignore lint/suspicious/noExplicitAny: fields of any part of a pod
  return [...walk(owner.spec.template.spec)].flatMap((part: any) => {
    const secret = part.secretKeyRef?.name ?? part.secretRef?.name ?? part.secret?.secretName;
    const map = part.configMapKeyRef?.name ?? part.configMapRef?.name ?? part.configMap?.name;
    return [
      ...(secret === undefined || secrets.includes(secret)
        ? []
        : [`${nameOf(owner)}: there is no Secret ${secret}`]),
      ...(map === undefined || maps.includes(map) ? [] : [`${nameOf(owner)}: there is no ConfigMap ${map}`]),
    ];
  });
}

export const referenceRules: Rule[] = [
  {
    // The schemas know versions that clusters have long stopped serving.
    name: 'API versions are stable',
    check: (objects) =>
      objects
        .filter(({ apiVersion }) => !/^([\w.-]+\/)?v\d+$/.test(apiVersion))
        .map((object) => `${nameOf(object)}: ${object.apiVersion} is not`),
  },
  {
    name: 'selectors and references find what they mean',
    check: (objects) => [
      ...listWorkloads(objects).flatMap(({ owner, labels }) => [
        ...(owner.kind === 'Job' || selects(owner.spec.selector, labels)
          ? []
          : [`${nameOf(owner)}: selects no pods`]),
        ...checkMentions(owner, objects),
      ]),
      ...ofKind(objects, 'Service').flatMap((service) => checkService(service, objects)),
      ...ofKind(objects, 'HTTPRoute').flatMap((route) => checkRoute(route, objects)),
      ...ofKind(objects, 'ServiceMonitor').flatMap((monitor) => checkMonitor(monitor, objects)),
      ...ofKind(objects, 'PodDisruptionBudget')
        .filter(({ spec }) => !hasLabels(spec.selector.matchLabels, objects))
        .map((budget) => `${nameOf(budget)}: selects no pods`),
      ...ofKind(objects, 'NetworkPolicy')
        .filter(({ spec }) => !listWorkloads(objects).some(({ labels }) => selects(spec.podSelector, labels)))
        .map((policy) => `${nameOf(policy)}: selects no pods`),
      ...ofKind(objects, 'HorizontalPodAutoscaler')
        .filter(({ spec }) => !find(objects, spec.scaleTargetRef.kind, spec.scaleTargetRef.name))
        .map((autoscaler) => `${nameOf(autoscaler)}: scales nothing`),
    ],
  },
];
