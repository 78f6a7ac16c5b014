import { type KubernetesObject, nameOf, walk } from '../objects.ts';
import { readEnvironment, readSecret } from './environment.ts';
import { listMountedFiles } from './files.ts';
import {
  type Container,
  endsByItself,
  find,
  findRole,
  listServiceWorkloads,
  listWorkloads,
  ofKind,
  type Rule,
  selects,
  unless,
  type Workload,
} from './rule.ts';

interface Port {
  name?: string;
  port?: number;
  containerPort?: number;
  targetPort?: string | number;
}

const hasPort = ({ ports = [] }: Container, port: string | number): boolean =>
  ports.some(({ name, containerPort }: Port) => name === port || containerPort === port);

function checkService(service: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const pods = listWorkloads(objects).filter(({ labels }) =>
    selects({ matchLabels: service.spec.selector }, labels),
  );
  if (pods.length !== 1) return [`selects the pods of ${pods.length} workloads`];
  const { containers } = pods[0]!;
  return service.spec.ports
    .filter(({ targetPort }: Port) => !containers.some((container) => hasPort(container, targetPort!)))
    .map(({ targetPort }: Port) => `its pods have no port ${targetPort}`);
}

function checkRoute({ spec }: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const backends: { name: string; port: number }[] = spec.rules.flatMap(
    ({ backendRefs }: { backendRefs: object[] }) => backendRefs,
  );
  const gateways: { namespace?: string; sectionName?: string }[] = spec.parentRefs;
  return [
    ...backends
      .filter(
        ({ name, port }) => !find(objects, 'Service', name)?.spec.ports.some((p: Port) => p.port === port),
      )
      .map(({ name, port }) => `there is no Service ${name}:${port}`),
    ...gateways.flatMap(({ namespace, sectionName }) => [
      ...unless(namespace !== undefined, 'its gateway has no namespace'),
      ...unless(sectionName !== undefined, "names none of the gateway's listeners (sectionName)"),
    ]),
    ...unless((spec.hostnames ?? []).length > 0, 'accepts requests for every host'),
  ];
}

/** Finds ports that a monitor names but that a Service selected by the monitor does not have. */
function checkMonitor({ spec }: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const services = ofKind(objects, 'Service').filter(({ metadata }) =>
    selects(spec.selector, metadata.labels),
  );
  if (services.length === 0) return ['selects no Service'];
  const endpoints: { port: string }[] = spec.endpoints;
  return endpoints.flatMap(({ port }) =>
    services
      .filter((service) => !service.spec.ports.some(({ name }: Port) => name === port))
      .map((service) => `${nameOf(service)} has no port ${port}`),
  );
}

/** Finds Secrets, ConfigMaps and keys that a pod names but that do not exist. */
function checkMentions({ spec, containers }: Workload, objects: readonly KubernetesObject[]): string[] {
  // biome-ignore lint/suspicious/noExplicitAny: fields of any part of a pod
  return [...walk([spec.volumes ?? [], ...containers])].flatMap((part: any) => {
    const secret = part.secretKeyRef?.name ?? part.secretRef?.name ?? part.secret?.secretName;
    const map = part.configMapKeyRef?.name ?? part.configMapRef?.name ?? part.configMap?.name;
    if (secret === undefined && map === undefined) return [];
    const volume = part.secret ?? part.configMap;
    const items = volume?.optional === true ? [] : (volume?.items ?? []);
    const requiredKeys = [part.secretKeyRef ?? part.configMapKeyRef, ...items]
      .filter((reference) => reference !== undefined && !reference.optional)
      .map(({ key }) => key);
    const contents =
      secret === undefined ? find(objects, 'ConfigMap', map)?.data : readSecret(objects, secret);
    if (contents === undefined && part.secretRef?.optional) return [];
    if (contents === undefined)
      return [`there is no ${secret === undefined ? `ConfigMap ${map}` : `Secret ${secret}`}`];
    return requiredKeys
      .filter((key) => !(key in contents))
      .map((key) => `${secret ?? map} has no key ${key}`);
  });
}

const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'];

function checkProbes({ containers }: Workload): string[] {
  return containers.flatMap((container) =>
    PROBES.flatMap((probe) => {
      const port = (container[probe]?.httpGet ?? container[probe]?.tcpSocket ?? container[probe]?.grpc)?.port;
      const isThere = port === undefined || hasPort(container, port);
      return unless(isThere, `${container.name}: ${probe} uses port ${port}, which does not exist`);
    }),
  );
}

/** Returns the file paths that a container's variables name: as their value, or in a url as `sslrootcert`. */
function listNamedFiles(objects: readonly KubernetesObject[], { env = [] }: Container): string[] {
  return env.flatMap(
    ({ name, value, valueFrom }: { name: string; value?: string; valueFrom?: Container }) => {
      const reference = valueFrom?.secretKeyRef;
      const text = value ?? readSecret(objects, reference?.name ?? '')?.[reference?.key ?? ''] ?? '';
      const inUrl = /[?&]sslrootcert=([^&]+)/.exec(text)?.[1];
      const named = /_FILE$|^NODE_EXTRA_CA_CERTS$/.test(name) && text !== '' ? [text] : [];
      return [...(inUrl ? [inUrl] : []), ...named];
    },
  );
}

interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
}

function checkFiles(workload: Workload, objects: readonly KubernetesObject[]): string[] {
  const { spec, containers } = workload;
  const volumes: Volume[] = [...(spec.volumes ?? []), ...claimsOf(workload)];
  const missingClaims = volumes
    .map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName)
    .filter((claim) => claim !== undefined && !find(objects, 'PersistentVolumeClaim', claim))
    .map((claim) => `there is no PersistentVolumeClaim ${claim}`);
  const missingFiles = containers.flatMap((container) => {
    const files = listMountedFiles(objects, workload, container);
    const mounts: { name: string; mountPath: string }[] = container.volumeMounts ?? [];
    return [
      ...mounts
        .filter(({ name }) => !volumes.some((volume) => volume.name === name))
        .map(({ name }) => `${container.name}: there is no volume ${name}`),
      ...listNamedFiles(objects, container)
        .filter((path) => !files.has(path))
        .map((path) => `${container.name}: ${path} is not mounted`),
      ...(container.command ?? [])
        .filter((word: string) => word.startsWith('/etc/') && !files.has(word))
        .map((path: string) => `${container.name}: ${path} is not mounted`),
    ];
  });
  return [...missingClaims, ...missingFiles];
}

const claimsOf = ({ owner }: Workload): { name: string }[] =>
  (owner.spec.volumeClaimTemplates ?? []).map(({ metadata }: KubernetesObject) => metadata);

function checkWorkload(workload: Workload, objects: readonly KubernetesObject[]): string[] {
  const { owner, labels, spec } = workload;
  const account = spec.serviceAccountName;
  const claimed = owner.spec.serviceName;
  const spreads: { labelSelector: object }[] = spec.topologySpreadConstraints ?? [];
  return [
    ...unless(endsByItself(workload) || selects(owner.spec.selector, labels), 'selects no pods'),
    ...unless(
      account === undefined || !!find(objects, 'ServiceAccount', account),
      `no ServiceAccount ${account}`,
    ),
    ...unless(claimed === undefined || !!find(objects, 'Service', claimed), `there is no Service ${claimed}`),
    ...unless(
      spreads.every(({ labelSelector }) => selects(labelSelector, labels)),
      'spreads other pods',
    ),
    ...checkMentions(workload, objects),
    ...checkProbes(workload),
    ...checkFiles(workload, objects),
  ];
}

interface PolicyRule {
  from?: { podSelector?: object }[];
  to?: { podSelector?: object }[];
  ports?: { port: string | number }[];
}

/** Finds selectors of a policy that match no pods, and ports that the pods which accept connections do not have. */
function checkPolicy({ spec }: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const findPods = (selector: object) =>
    listWorkloads(objects).filter(({ labels }) => selects(selector, labels));
  const checkPorts = (pods: Workload[], { ports = [] }: PolicyRule) =>
    ports
      .filter(({ port }) => !pods.some(({ containers }) => containers.some((each) => hasPort(each, port))))
      .map(({ port }) => `no pod that it selects has port ${port}`);
  const own = findPods(spec.podSelector);
  const ingress: PolicyRule[] = spec.ingress ?? [];
  const egress: PolicyRule[] = spec.egress ?? [];
  const peers = [...ingress, ...egress].flatMap(({ from = [], to = [] }) => [...from, ...to]);
  return [
    ...unless(own.length > 0, 'selects no pods'),
    ...peers.flatMap(({ podSelector }) =>
      unless(
        podSelector === undefined || findPods(podSelector).length > 0,
        'has a peer that selects no pods',
      ),
    ),
    ...ingress.flatMap((rule) => checkPorts(own, rule)),
    ...egress.flatMap((rule) =>
      (rule.to ?? []).flatMap(({ podSelector }) =>
        podSelector === undefined ? [] : checkPorts(findPods(podSelector), rule),
      ),
    ),
  ];
}

/** Finds urls of the service that name a host of this namespace without a Service, or with another port. */
function checkUrls({ containers }: Workload, objects: readonly KubernetesObject[]): string[] {
  const urls = containers
    .flatMap((container) => Object.values(readEnvironment(objects, container)))
    .map((text) => URL.parse(text))
    .filter((url) => url !== null);
  return urls
    .filter(({ hostname }) => /^[a-z][\w-]*$/.test(hostname) && hostname !== 'localhost')
    .filter(({ hostname, port }) => {
      const ports: Port[] = find(objects, 'Service', hostname)?.spec.ports ?? [];
      return !ports.some((candidate) => port === '' || candidate.port === Number(port));
    })
    .map(({ hostname, port }) => `there is no Service ${hostname}:${port}`);
}

/** For each kind of object, the function that checks the references of such an object. */
const CHECKS: Record<string, (object: KubernetesObject, objects: readonly KubernetesObject[]) => string[]> = {
  Service: checkService,
  HTTPRoute: checkRoute,
  ServiceMonitor: checkMonitor,
  PodDisruptionBudget: ({ spec }, objects) =>
    unless(
      listWorkloads(objects).filter(({ labels }) => selects(spec.selector, labels)).length === 1,
      'selects no pods',
    ),
  NetworkPolicy: checkPolicy,
  HorizontalPodAutoscaler: ({ spec: { scaleTargetRef } }, objects) =>
    unless(!!find(objects, scaleTargetRef.kind, scaleTargetRef.name), 'scales nothing'),
};

/**
 * Returns whether a name ends in a hash of the content. Pods read settings only when they start. With a hash, a changed
 * setting gives the ConfigMap a new name, and the new name restarts the pods.
 */
const hasHash = (name: string): boolean => /-[a-z0-9]{10}$/.test(name);

function findGenerated(objects: readonly KubernetesObject[]): string[] {
  const dashboards = ofKind(objects, 'ConfigMap').filter(
    ({ metadata }) => metadata.labels?.grafana_dashboard,
  );
  const others = ofKind(objects, 'ConfigMap').filter((map) => !dashboards.includes(map));
  const needsDashboard = ofKind(objects, 'PrometheusRule').length > 0;
  return [
    ...others
      .filter(({ metadata }) => !hasHash(metadata.name))
      .map((map) => `${nameOf(map)}: its name has no hash, so a change does not restart the pods`),
    ...dashboards
      .filter(({ metadata }) => hasHash(metadata.name) || metadata.labels?.grafana_dashboard !== '1')
      .map((map) => `${nameOf(map)}: Grafana would keep the old one too`),
    ...unless(
      !needsDashboard || dashboards.length === 1,
      'Grafana finds no dashboard (grafana_dashboard: "1")',
    ),
  ];
}

export const referenceRules: Rule[] = [
  {
    // The schemas do not check this, because they also include API versions that clusters no longer serve.
    name: 'API versions are stable',
    check: (objects) =>
      objects
        .filter(({ apiVersion }) => !/^([\w.-]+\/)?v\d+$/.test(apiVersion))
        .map((object) => `${nameOf(object)}: ${object.apiVersion} is not`),
  },
  {
    name: 'selectors and references match existing objects',
    check: (objects) => [
      ...listWorkloads(objects).flatMap((workload) =>
        checkWorkload(workload, objects).map((fault) => `${nameOf(workload.owner)}: ${fault}`),
      ),
      ...listServiceWorkloads(objects).flatMap((workload) =>
        checkUrls(workload, objects).map((fault) => `${nameOf(workload.owner)}: ${fault}`),
      ),
      ...objects.flatMap((object) =>
        (CHECKS[object.kind]?.(object, objects) ?? []).map((fault) => `${nameOf(object)}: ${fault}`),
      ),
    ],
  },
  {
    name: 'everything is in one namespace, which exists',
    check: (objects) => {
      const [namespace, ...others] = ofKind(objects, 'Namespace');
      if (namespace === undefined || others.length > 0) return ['there must be exactly one Namespace'];
      return objects
        .filter(
          ({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace !== namespace.metadata.name,
        )
        .map((object) => `${nameOf(object)}: is in ${object.metadata.namespace}`);
    },
  },
  {
    name: 'a changed setting restarts the pods, and a changed dashboard replaces the old one',
    check: findGenerated,
  },
  {
    name: 'both roles exist, with a Service and monitoring',
    check: (objects) =>
      (['api', 'worker'] as const).flatMap((role) => [
        ...unless(
          findRole(objects, role)?.main.args?.[0] === role,
          `Deployment/${role}: does not run ${role}`,
        ),
        ...unless(find(objects, 'Service', role) !== undefined, `there is no Service ${role}`),
        ...unless(
          ofKind(objects, 'ServiceMonitor').length === 0 || isScraped(objects, role),
          `no ServiceMonitor finds ${role}`,
        ),
      ]),
  },
];

const isScraped = (objects: readonly KubernetesObject[], role: string): boolean =>
  ofKind(objects, 'ServiceMonitor').some(
    ({ spec }) =>
      spec.jobLabel === 'app.kubernetes.io/component' &&
      selects(spec.selector, find(objects, 'Service', role)?.metadata.labels),
  );
