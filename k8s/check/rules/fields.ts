import { type KubernetesObject, nameOf } from '../objects.ts';
import { readQuantity } from '../quantity.ts';
import type { Rule } from './rule.ts';

/**
 * All fields that objects may have, with their allowed values. Other fields are refused, so that nobody needs to
 * consider their effects. Rules that compare several objects are in the other files.
 */

/** Allows any value, because another rule checks it or because all values are fine. */
const ANY: true = true;

/** An inclusive range of numbers or quantities. A share such as `25%` is compared as the number 25. */
class Range {
  readonly least: number;
  readonly greatest: number;
  constructor(least: number, greatest: number) {
    this.least = least;
    this.greatest = greatest;
  }
}

/** A required field. */
class Must {
  readonly allowed: Allowed;
  constructor(allowed: Allowed) {
    this.allowed = allowed;
  }
}

/**
 * What a field may contain: any value (`true`), a number in a range, one of several values, or an object with the
 * listed fields. If the field contains an array, each element must be allowed.
 */
type Allowed = true | Range | Must | readonly (string | number | boolean)[] | { [field: string]: Allowed };

const from = (least: number, greatest: number) => new Range(least, greatest);
const must = (allowed: Allowed) => new Must(allowed);

const PROBE = { httpGet: ANY, tcpSocket: ANY, exec: ANY, timeoutSeconds: from(1, 10) };

const CONTAINER = {
  name: ANY,
  image: must(ANY),
  command: ANY,
  args: ANY,
  env: { name: ANY, value: ANY, valueFrom: ANY },
  envFrom: ANY,
  resources: must({
    requests: must({ cpu: must(from(0.01, 16)), memory: must(from(16 * 2 ** 20, 64 * 2 ** 30)) }),
    limits: must({ cpu: must(from(0.1, 16)), memory: must(from(16 * 2 ** 20, 64 * 2 ** 30)) }),
  }),
  securityContext: must({
    allowPrivilegeEscalation: must([false]),
    readOnlyRootFilesystem: must([true]),
    capabilities: must({ drop: must(['ALL']) }),
  }),
  volumeMounts: { name: ANY, mountPath: ANY, readOnly: ANY, subPath: ANY },
};

/**
 * A container that serves requests. Its probes must not restart it after only one slow response. When it can no longer
 * serve, its readiness probe must fail soon, so that it gets no more requests.
 */
const SERVER = {
  ...CONTAINER,
  ports: { name: ANY, containerPort: ANY, protocol: ['TCP'] },
  startupProbe: must({ ...PROBE, periodSeconds: from(1, 2), failureThreshold: must(from(20, 120)) }),
  livenessProbe: must({ ...PROBE, periodSeconds: from(10, 30), failureThreshold: from(3, 10) }),
  readinessProbe: must({ ...PROBE, periodSeconds: from(1, 10), failureThreshold: from(1, 3) }),
  lifecycle: { preStop: { sleep: { seconds: from(5, 60) }, exec: ANY } },
};

const POD = {
  automountServiceAccountToken: must([false]),
  enableServiceLinks: [false],
  serviceAccountName: ANY,
  imagePullSecrets: ANY,
  nodeSelector: ANY,
  tolerations: ANY,
  securityContext: must({
    runAsNonRoot: must([true]),
    runAsUser: must(from(1, 65_535)),
    runAsGroup: from(1, 65_535),
    fsGroup: from(1, 65_535),
    seccompProfile: must({ type: must(['RuntimeDefault']) }),
  }),
  containers: must(CONTAINER),
  volumes: {
    name: ANY,
    secret: ANY,
    configMap: ANY,
    persistentVolumeClaim: { claimName: ANY },
    emptyDir: ANY,
  },
};

const SERVERS = {
  ...POD,
  containers: must(SERVER),
  initContainers: CONTAINER,
  terminationGracePeriodSeconds: must(from(10, 300)),
  topologySpreadConstraints: {
    maxSkew: from(1, 2),
    topologyKey: ANY,
    whenUnsatisfiable: ['ScheduleAnyway'],
    matchLabelKeys: ANY,
    labelSelector: ANY,
  },
};

/** A pod that ends after its work or at a deadline. */
const ENDING = { ...POD, restartPolicy: must(['Never']) };

const JOB = {
  backoffLimit: must(from(0, 3)),
  activeDeadlineSeconds: must(from(60, 43_200)),
  template: must({ metadata: ANY, spec: must(ENDING) }),
};

const SPREAD_OVER_TIME = { type: ['Pods', 'Percent'], value: from(1, 100), periodSeconds: from(30, 600) };

const SPECS: Record<string, Allowed> = {
  Deployment: {
    replicas: from(1, 100),
    revisionHistoryLimit: from(1, 20),
    minReadySeconds: from(0, 60),
    progressDeadlineSeconds: from(120, 3_600),
    strategy: must({
      type: ['RollingUpdate'],
      rollingUpdate: must({ maxUnavailable: must([0]), maxSurge: must(from(1, 100)) }),
    }),
    selector: ANY,
    template: must({ metadata: ANY, spec: must(SERVERS) }),
  },
  StatefulSet: {
    replicas: [1],
    serviceName: ANY,
    selector: ANY,
    template: must({ metadata: ANY, spec: must(SERVERS) }),
    volumeClaimTemplates: ANY,
  },
  Job: JOB,
  Pod: { ...ENDING, activeDeadlineSeconds: must(from(60, 43_200)) },
  CronJob: {
    schedule: ANY,
    timeZone: must(ANY),
    concurrencyPolicy: must(['Forbid']),
    startingDeadlineSeconds: must(from(60, 43_200)),
    jobTemplate: must({ spec: must(JOB) }),
  },
  Service: {
    type: ['ClusterIP'],
    clusterIP: ['None'],
    selector: must(ANY),
    ports: { name: ANY, port: ANY, targetPort: ANY, protocol: ['TCP'], appProtocol: ['http'] },
  },
  PodDisruptionBudget: {
    maxUnavailable: ANY,
    minAvailable: ANY,
    unhealthyPodEvictionPolicy: ['AlwaysAllow'],
    selector: ANY,
  },
  HorizontalPodAutoscaler: {
    scaleTargetRef: ANY,
    minReplicas: must(from(2, 1_000)),
    maxReplicas: from(2, 1_000),
    metrics: {
      type: ANY,
      resource: {
        name: ['cpu'],
        target: { type: ['AverageValue'], averageValue: must(from(0.2, 1)) },
      },
      pods: {
        metric: ANY,
        target: { type: ['AverageValue'], averageValue: must(from(500, 50_000)) },
      },
    },
    behavior: must({
      scaleUp: { stabilizationWindowSeconds: from(0, 60), policies: SPREAD_OVER_TIME },
      // Removes pods slowly, because each pod that ends also ends its held polls.
      scaleDown: must({
        stabilizationWindowSeconds: must(from(300, 3_600)),
        policies: must({ ...SPREAD_OVER_TIME, type: ['Pods'], value: from(1, 10) }),
      }),
    }),
  },
  HTTPRoute: {
    parentRefs: { name: ANY, namespace: ANY, sectionName: ANY },
    hostnames: ANY,
    // Allows no retries, because an aborted request may have been executed. Allows no filters, so that headers stay
    // unchanged.
    rules: {
      matches: { path: must({ type: ANY, value: ANY }) },
      timeouts: ANY,
      backendRefs: { name: ANY, port: ANY, weight: from(1, 1_000_000) },
    },
  },
  // https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/gateway/customization/
  TargetGroupConfiguration: {
    targetReference: must({ name: must(['api']) }),
    defaultConfiguration: must({
      targetType: must(['ip']),
      healthCheckConfig: must({
        healthCheckPath: must(['/readyz']),
        healthCheckInterval: from(5, 15),
        healthCheckTimeout: from(2, 10),
        healthyThresholdCount: from(2, 3),
        unhealthyThresholdCount: from(2, 3),
      }),
      targetGroupAttributes: { key: ['deregistration_delay.timeout_seconds'], value: from(30, 300) },
    }),
  },
  // https://cloud.google.com/kubernetes-engine/docs/how-to/configure-gateway-resources
  GCPBackendPolicy: {
    targetRef: must({ group: [''], kind: must(['Service']), name: must(['api']) }),
    // The timeout is longer than the longest request, which is an export.
    default: must({
      timeoutSec: must(from(3_600, 86_400)),
      connectionDraining: { drainingTimeoutSec: from(30, 300) },
    }),
  },
  HealthCheckPolicy: {
    targetRef: must({ group: [''], kind: must(['Service']), name: must(['api']) }),
    default: must({
      checkIntervalSec: from(3, 15),
      timeoutSec: from(1, 10),
      healthyThreshold: from(1, 3),
      unhealthyThreshold: from(2, 3),
      config: must({
        type: must(['HTTP']),
        httpHealthCheck: must({ port: must([3_000]), requestPath: must(['/readyz']) }),
      }),
    }),
  },
  ServiceMonitor: {
    selector: ANY,
    jobLabel: ANY,
    endpoints: { port: ANY, interval: ANY, scrapeTimeout: ANY },
  },
  Probe: ANY,
  PrometheusRule: ANY,
  NetworkPolicy: ANY,
  PersistentVolumeClaim: {
    storageClassName: ANY,
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: from(2 ** 30, 2 ** 50) } },
  },
};

/** Kinds without a `spec`. Other rules check their objects. */
const OTHER_KINDS = ['ConfigMap', 'Namespace', 'Secret', 'ServiceAccount'];

function isWithin(value: unknown, { least, greatest }: Range): boolean {
  const number = readQuantity(String(value).replace(/%$/, ''));
  return number >= least && number <= greatest;
}

function* findFaults(value: unknown, allowed: Allowed, path: string): Generator<string> {
  if (allowed instanceof Must) yield* findFaults(value, allowed.allowed, path);
  else if (allowed === ANY) return;
  else if (Array.isArray(value)) for (const part of value) yield* findFaults(part, allowed, path);
  else if (allowed instanceof Range) {
    const { least, greatest } = allowed;
    if (!isWithin(value, allowed)) yield `${path} is ${value}, expected ${least} to ${greatest}`;
  } else if (Array.isArray(allowed)) {
    if (!allowed.includes(value as string)) yield `${path} is ${value}, expected ${allowed.join(' or ')}`;
  } else yield* findFieldFaults(value as object, allowed as { [field: string]: Allowed }, path);
}

function* findFieldFaults(
  value: object,
  fields: { readonly [field: string]: Allowed },
  path: string,
): Generator<string> {
  for (const [key, part] of Object.entries(value)) {
    const allowed = fields[key];
    if (allowed === undefined) yield `${path}.${key} is not allowed`;
    else yield* findFaults(part, allowed, `${path}.${key}`);
  }
  for (const [key, allowed] of Object.entries(fields))
    if (allowed instanceof Must && !(key in value)) yield `${path}.${key} is missing`;
}

/** Finds forbidden fields and values of an object, and missing required fields. */
export function checkFields(object: KubernetesObject): string[] {
  const allowed = SPECS[object.kind];
  if (allowed !== undefined) return [...findFaults(object.spec, allowed, 'spec')];
  return OTHER_KINDS.includes(object.kind) ? [] : [`${object.kind} is not allowed`];
}

export const fieldRules: Rule[] = [
  {
    name: 'every field and value is allowed, and required fields are present',
    check: (objects) =>
      objects.flatMap((object) => checkFields(object).map((fault) => `${nameOf(object)}: ${fault}`)),
  },
];
