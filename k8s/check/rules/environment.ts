import { type Config, readConfig } from '../../../src/config.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import { watchReads } from '../watch-reads.ts';
import {
  type Container,
  findRole,
  listServiceWorkloads,
  ofKind,
  type Rule,
  unless,
  type Workload,
} from './rule.ts';

/** Variables that only Node and libraries read. */
const OF_THE_RUNTIME = /^(NODE_OPTIONS|NODE_EXTRA_CA_CERTS|UV_THREADPOOL_SIZE|TZ)$/;

/**
 * For each IP version, the shortest allowed prefix of a network from which `X-Forwarded-For` is trusted. Such a network
 * should contain only the few pods of the gateway.
 */
const SHORTEST_PREFIX = { 4: 24, 6: 64 };

/** The maximum number of trusted proxies: the gateway, and one load balancer or CDN in front of it. */
const MOST_PROXIES = 2;

/** Settings that must be equal for api and worker. */
const SHARED_SETTINGS = ['redisAddress', 'redisPrefix', 'databaseUrl', 'databaseImportUrl'] as const;

interface Variable {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef?: { name: string; key: string }; fieldRef?: { fieldPath: string } };
}

/** A source of variables. Exactly one of its two fields is set. */
interface EnvironmentSource {
  configMapRef?: { name: string };
  secretRef?: { name: string; optional?: boolean };
}

/** Returns the decoded values of a Secret by key, or undefined if the Secret is missing. */
export function readSecret(
  objects: readonly KubernetesObject[],
  name: string,
): Record<string, string> | undefined {
  const secret = ofKind(objects, 'Secret').find(({ metadata }) => metadata.name === name);
  if (secret === undefined) return undefined;
  const encoded = Object.entries((secret.data ?? {}) as Record<string, string>);
  const decoded = encoded.map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]);
  return { ...Object.fromEntries(decoded), ...secret.stringData };
}

const readMap = (objects: readonly KubernetesObject[], name: string): Record<string, string> =>
  ofKind(objects, 'ConfigMap').find(({ metadata }) => metadata.name === name)?.data ?? {};

function readVariable(objects: readonly KubernetesObject[], { value, valueFrom }: Variable): string {
  const { secretKeyRef, fieldRef } = valueFrom ?? {};
  if (secretKeyRef) return readSecret(objects, secretKeyRef.name)?.[secretKeyRef.key] ?? '';
  return value ?? fieldRef?.fieldPath ?? '';
}

/**
 * Returns the environment of a container. The variables in its `env` override those of its ConfigMaps and Secrets. If
 * the value of a variable in `env` contains `$(NAME)`, the value of the variable NAME replaces this reference.
 */
export function readEnvironment(
  objects: readonly KubernetesObject[],
  { envFrom = [], env = [] }: Container,
): Record<string, string> {
  const sources = envFrom.map(({ configMapRef, secretRef }: EnvironmentSource) =>
    configMapRef ? readMap(objects, configMapRef.name) : readSecret(objects, secretRef!.name),
  );
  const environment: Record<string, string> = Object.assign({}, ...sources);
  for (const variable of env as Variable[]) {
    environment[variable.name] = readVariable(objects, variable).replace(
      /\$\((\w+)\)/g,
      (reference, name) => environment[name] ?? reference,
    );
  }
  return environment;
}

/** Removes the paths of files that exist only in pods. `readConfig` would try to read these files. */
function withoutFiles(environment: Record<string, string>): Record<string, string> {
  const { REDIS_CA_FILE: _, ...rest } = environment;
  const urls = Object.entries(rest).map(([name, text]) => [
    name,
    text.replace(/([?&])sslrootcert=[^&]*&?/, '$1'),
  ]);
  return Object.fromEntries(urls);
}

/** Returns the service's configuration from a container's environment. Throws a `ConfigError` if it is invalid. */
export const readContainerConfig = (objects: readonly KubernetesObject[], container: Container): Config =>
  readConfig(withoutFiles(readEnvironment(objects, container)));

/** Returns the configuration of one role's pods, or undefined if the overlay has no such pods. */
export function findConfig(objects: readonly KubernetesObject[], role: 'api' | 'worker'): Config | undefined {
  const workload = findRole(objects, role);
  return workload && readContainerConfig(objects, workload.main);
}

/** Returns each container of the service, with its name for messages. */
const listServiceContainers = (objects: readonly KubernetesObject[]) =>
  listServiceWorkloads(objects).flatMap(({ owner, containers }) =>
    containers.map((container: Container) => ({ container, name: `${nameOf(owner)}: ${container.name}` })),
  );

/**
 * Returns the variables that the service does not read. The result leaves out the variables of the runtime, and the
 * variables to which other variables refer. Throws a `ConfigError` if the environment is invalid.
 */
function listUnknown(objects: readonly KubernetesObject[], container: Container): string[] {
  const environment = withoutFiles(readEnvironment(objects, container));
  const { proxy, listUnread } = watchReads(environment);
  readConfig(proxy as Record<string, string>);
  const isReferred = (name: string) =>
    (container.env ?? []).some(({ value }: Variable) => value?.includes(`$(${name})`));
  return listUnread().filter((name) => !OF_THE_RUNTIME.test(name) && !isReferred(name));
}

/** Returns the faults that the check finds, or the message of the error that it throws. */
function describeError(check: () => string[]): string[] {
  try {
    return check();
  } catch (error) {
    return [(error as Error).message];
  }
}

function findPortFaults(objects: readonly KubernetesObject[], { owner, main }: Workload): string[] {
  const { port, metricsPort } = readContainerConfig(objects, main);
  const ports: { name: string; containerPort: number }[] = main.ports ?? [];
  const hasPort = (name: string, number: number | undefined) =>
    ports.some((candidate) => candidate.name === name && candidate.containerPort === number);
  return [
    ...unless(hasPort('http', port), `${nameOf(owner)}: port http is not PORT ${port}`),
    ...unless(
      hasPort('metrics', metricsPort),
      `${nameOf(owner)}: port metrics is not METRICS_PORT ${metricsPort}`,
    ),
  ];
}

/**
 * The allowed size of V8's heap, as a share of the memory limit. With a smaller heap, V8 would collect garbage
 * constantly. With a larger one, the container could be killed.
 */
const HEAP_SHARES = [0.25, 0.8] as const;

/**
 * Checks the options in NODE_OPTIONS. Allows only two options, because others could open a port or change what the code
 * does.
 */
function findOptionFaults(options: string, memoryBytes: number): string[] {
  return options
    .split(/\s+/)
    .filter(Boolean)
    .flatMap((option) => {
      const [, megabytes] = /^--max-old-space-size=(\d+)$/.exec(option) ?? [];
      if (megabytes === undefined)
        return unless(option === '--enable-source-maps', `NODE_OPTIONS: ${option} is not allowed`);
      const share = (Number(megabytes) * 2 ** 20) / memoryBytes;
      const isWithin = share >= HEAP_SHARES[0] && share <= HEAP_SHARES[1];
      return unless(isWithin, `NODE_OPTIONS: the heap is ${Math.round(share * 100)} % of the memory limit`);
    });
}

/** Returns whether a trusted network may contain more than the gateway. A name such as `loopback` counts as wide. */
const isWide = (network: string): boolean => {
  const version = network.includes(':') ? 6 : 4;
  const [address, prefix = version === 4 ? '32' : '128'] = network.split('/');
  const isAddress = /^[\d.]+$|:/.test(address!);
  return !isAddress || Number(prefix) < SHORTEST_PREFIX[version];
};

function findTrustFaults(objects: readonly KubernetesObject[]): string[] {
  if (ofKind(objects, 'HTTPRoute').length === 0) return [];
  const { trustProxy } = findConfig(objects, 'api')!;
  if (trustProxy === false)
    return ['TRUST_PROXY: no proxy is trusted, so all clients have the address of the gateway'];
  if (typeof trustProxy === 'number')
    return unless(
      trustProxy >= 1 && trustProxy <= MOST_PROXIES,
      `TRUST_PROXY: ${trustProxy} hops would let clients choose their own address`,
    );
  return trustProxy
    .filter(isWide)
    .map((network) => `TRUST_PROXY: ${network} is wider than /24, so others could choose their own address`);
}

export const environmentRules: Rule[] = [
  {
    name: 'the service starts with the environment, and knows every variable in it',
    check: (objects) =>
      listServiceContainers(objects).flatMap(({ container, name }) =>
        describeError(() =>
          listUnknown(objects, container).map((variable) => `the service does not read ${variable}`),
        ).map((fault) => `${name}: ${fault}`),
      ),
  },
  {
    name: 'ports are those that the service listens on',
    check: (objects) =>
      listServiceWorkloads(objects)
        .filter(({ owner }) => owner.kind === 'Deployment')
        .flatMap((workload) => findPortFaults(objects, workload)),
  },
  {
    name: 'the service listens where other pods reach it, as a production process',
    check: (objects) =>
      listServiceContainers(objects).flatMap(({ container, name }) => {
        const { host, production } = readContainerConfig(objects, container);
        return [
          ...unless(host === '0.0.0.0' || host === '::', `${name}: HOST is ${host}`),
          ...unless(production, `${name}: NODE_ENV is not production`),
        ];
      }),
  },
  {
    name: 'all roles share one Redis, under one prefix, and one database',
    check: (objects) => {
      const configs = (['api', 'worker'] as const).map((role) => findConfig(objects, role)!);
      const differing = SHARED_SETTINGS.filter(
        (field) => new Set(configs.map((config) => JSON.stringify(config[field]))).size > 1,
      );
      return differing.map((field) => `api and worker have different values of ${field}`);
    },
  },
  {
    name: "only the gateway may name the client's address",
    check: (objects) => findTrustFaults(objects).map((fault) => `Deployment/api: ${fault}`),
  },
  {
    name: 'the image runs as it was built, with few options for Node',
    check: (objects) =>
      listServiceContainers(objects).flatMap(({ container, name }) => {
        const limit = readQuantity(container.resources?.limits?.memory ?? '0');
        const { NODE_OPTIONS = '' } = readEnvironment(objects, container);
        return [
          ...unless(container.command === undefined, 'overrides the command of the image'),
          ...findOptionFaults(NODE_OPTIONS, limit),
        ].map((fault) => `${name}: ${fault}`);
      }),
  },
];
