import type { KubernetesObject } from '../objects.ts';
import { readEnvironment } from '../rules/environment.ts';
import { listHosts, type Pooler, readPooler } from '../rules/pooler.ts';
import { listWorkloads, ofKind, selects, type Workload } from '../rules/rule.ts';
import type { Flow, Place } from './flow.ts';

/**
 * Derives from an overlay's objects which connections the overlay needs. The sources are the urls in variables, the
 * databases of the pooler, the HTTPRoutes, and the ServiceMonitors.
 */

const DNS: Place = { kind: 'namespace', name: 'kube-system' };

/** NodeLocal DNSCache listens on the node, at an address that pod selectors do not match. */
const DNS_OF_NODE: Place = { kind: 'network', cidr: '169.254.20.10/32' };

/** If a gateway has no pods in the cluster, this annotation of its HTTPRoute lists the gateway's networks. */
const GATEWAY_NETWORKS = 'bookmarks/gateway-networks';

/** The namespace of Prometheus. It is fixed here because no object of this service names it. */
const PROMETHEUS: Place = { kind: 'namespace', name: 'monitoring' };

const DEFAULT_PORTS: Record<string, number> = { 'http:': 80, 'https:': 443, 'redis:': 6379, 'rediss:': 6379 };

/** Returns every connection that the overlay needs, each once. */
export function listNeededFlows(objects: readonly KubernetesObject[]): Flow[] {
  const outward = listWorkloads(objects).flatMap((workload) =>
    listTargets(objects, workload).map(({ host, port, isPublic }): Flow => {
      const { place, port: podPort } = findPlace(objects, host, port, isPublic);
      return { from: { kind: 'pods', workload }, to: place, protocol: 'TCP', port: podPort };
    }),
  );
  return [...listNameFlows(outward), ...outward, ...listRequests(objects), ...listScrapes(objects)];
}

interface Target {
  host: string;
  port: number;
  isPublic: boolean;
}

/** Returns the hosts and ports to which a workload's pods connect. */
function listTargets(objects: readonly KubernetesObject[], workload: Workload): Target[] {
  const pooler: Pooler | undefined = readPooler(objects, workload);
  if (pooler) {
    return Object.values(pooler.databases).flatMap((line) =>
      listHosts(line).map((host) => ({
        host,
        port: Number(/\bport=(\d+)/.exec(line)?.[1] ?? 5432),
        isPublic: false,
      })),
    );
  }
  const environments = workload.containers.map((container) => readEnvironment(objects, container));
  return environments.flatMap((environment) => listUrls(environment, workload));
}

/** Returns whether the migration connects to the url in this variable. The migration connects to no other url. */
const isUsedByMigration = (name: string) => name === 'DATABASE_URL';

/** Returns whether a variable contains urls that only browsers use. Pods do not connect to them. */
const isOwnAddress = (name: string) => name === 'PUBLIC_URL' || name === 'APP_REDIRECTS';

function listUrls(environment: Record<string, string>, workload: Workload): Target[] {
  const isMigration = workload.main.args?.[0] === 'migrate';
  const urls = Object.entries(environment).filter(
    ([name]) => !isOwnAddress(name) && (!isMigration || isUsedByMigration(name)),
  );
  return urls.flatMap(([, text]) => {
    const texts = /^\w+:\/\//.test(text) ? text.split(',') : [];
    return texts.map(readTarget).filter((target) => target !== undefined);
  });
}

function readTarget(text: string): Target | undefined {
  const url = URL.parse(text.replace(/^postgres(ql)?:/, 'http:'));
  if (!url || url.hostname === '127.0.0.1') return undefined;
  const isPostgres = text.startsWith('postgres');
  const port = Number(url.port) || (isPostgres ? 5432 : DEFAULT_PORTS[url.protocol]!);
  return { host: url.hostname, port, isPublic: url.protocol === 'https:' };
}

/**
 * Returns where a connection to this host and port leads: to pods, to another namespace, or to a host outside the
 * cluster. For pods, the returned port is the port of the pods, not of their Service. Throws if the host names a
 * Service that does not exist or does not have this port.
 */
function findPlace(
  objects: readonly KubernetesObject[],
  host: string,
  port: number,
  isPublic: boolean,
): { place: Place; port: number } {
  // The host name of a Service is `name` or `name.namespace`, or begins with `name.namespace.svc`.
  const [name, namespace, third] = host.split('.');
  const own = ofKind(objects, 'Namespace')[0]?.metadata.name;
  if (namespace === undefined || namespace === own) {
    const service = ofKind(objects, 'Service').find(({ metadata }) => metadata.name === name);
    if (service === undefined) throw new Error(`there is no Service ${host}`);
    const ports: { port: number; targetPort?: string | number }[] = service.spec.ports;
    const servicePort = ports.find((candidate) => candidate.port === port);
    if (servicePort === undefined) throw new Error(`Service ${host} has no port ${port}`);
    const workload = findPods(objects, service);
    return { place: { kind: 'pods', workload }, port: readPort(workload, servicePort.targetPort ?? port) };
  }
  const isInCluster = third === undefined || third === 'svc';
  return isInCluster
    ? { place: { kind: 'namespace', name: namespace }, port }
    : { place: { kind: 'outside', host, isPublic }, port };
}

function findPods(objects: readonly KubernetesObject[], service: KubernetesObject): Workload {
  const workload = listWorkloads(objects).find(({ labels }) =>
    selects({ matchLabels: service.spec.selector }, labels),
  );
  if (workload === undefined) throw new Error(`Service ${service.metadata.name} selects no pods`);
  return workload;
}

/** Returns the number of a workload's port, given its number or name. Throws if no port has the given name. */
export function readPort(workload: Workload, port: string | number): number {
  if (typeof port === 'number') return port;
  const ports: { name?: string; containerPort: number }[] = workload.containers.flatMap(
    (container) => container.ports ?? [],
  );
  const found = ports.find(({ name }) => name === port);
  if (found === undefined) throw new Error(`${workload.owner.metadata.name} has no port ${port}`);
  return found.containerPort;
}

/** Lists the flows that only some clusters need: each flow to DNS, but with NodeLocal DNSCache as the target. */
export const listOptionalFlows = (objects: readonly KubernetesObject[]): Flow[] =>
  listNeededFlows(objects)
    .filter(({ to }) => to === DNS)
    .map((flow) => ({ ...flow, to: DNS_OF_NODE }));

/** Lists the flows to DNS. Every workload that opens connections needs them, because it connects to hosts by name. */
function listNameFlows(outward: readonly Flow[]): Flow[] {
  const workloads = new Set(outward.map(({ from }) => (from as Place & { kind: 'pods' }).workload));
  return [...workloads].flatMap((workload) =>
    (['UDP', 'TCP'] as const).map(
      (protocol): Flow => ({ from: { kind: 'pods', workload }, to: DNS, protocol, port: 53 }),
    ),
  );
}

function listRequests(objects: readonly KubernetesObject[]): Flow[] {
  return ofKind(objects, 'HTTPRoute').flatMap(({ spec, metadata }) => {
    const networks = metadata.annotations?.[GATEWAY_NETWORKS];
    const gateways: Place[] = networks
      ? networks.split(' ').map((cidr): Place => ({ kind: 'network', cidr }))
      : spec.parentRefs.map(
          ({ namespace }: { namespace: string }): Place => ({ kind: 'namespace', name: namespace }),
        );
    const backends: { name: string; port: number }[] = spec.rules.flatMap(
      ({ backendRefs }: { backendRefs: object[] }) => backendRefs,
    );
    return gateways.flatMap((from) =>
      backends.map(({ name, port }): Flow => {
        const { place, port: podPort } = findPlace(objects, name, port, false);
        return { from, to: place, protocol: 'TCP', port: podPort };
      }),
    );
  });
}

function listScrapes(objects: readonly KubernetesObject[]): Flow[] {
  return ofKind(objects, 'ServiceMonitor').flatMap(({ spec }) => {
    const services = ofKind(objects, 'Service').filter(({ metadata }) =>
      selects(spec.selector, metadata.labels),
    );
    return services.flatMap((service) =>
      spec.endpoints.map(({ port }: { port: string }): Flow => {
        const workload = findPods(objects, service);
        return {
          from: PROMETHEUS,
          to: { kind: 'pods', workload },
          protocol: 'TCP',
          port: readPort(workload, port),
        };
      }),
    );
  });
}
