import { longestImport } from '../../../src/domain/waits.ts';
import { longestExport, longestPoll } from '../../../src/http/client-timeouts.ts';
import { PUBLIC_PATHS } from '../../../src/http/public-paths.ts';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { readDurationSeconds, readQuantity } from '../quantity.ts';
import { findConfig } from './environment.ts';
import { find, ofKind, type Rule, unless } from './rule.ts';

/**
 * A gateway's timeout must exceed the service's own time limit for a request by this many seconds. A held poll may end
 * up to 3 s late, and the poll's response needs time on the network.
 */
const ROOM_SECONDS = 10;

interface RouteRule {
  matches: { path: { type: string; value: string } }[];
  timeouts?: { request?: string; backendRequest?: string };
}

function neededSeconds({ matches }: RouteRule, objects: readonly KubernetesObject[]): number {
  const isImport = matches.some(({ path }) => path.value.endsWith('/import'));
  return (isImport ? longestImport : longestPoll)(findConfig(objects, 'api')!) + ROOM_SECONDS;
}

function findTimeoutFaults(rule: RouteRule, objects: readonly KubernetesObject[]): string[] {
  const path = rule.matches[0]!.path.value;
  const { request, backendRequest = request } = rule.timeouts ?? {};
  if (request === undefined || backendRequest === undefined) return [`${path} has the gateway's own timeout`];
  const needed = neededSeconds(rule, objects);
  const [whole, backend] = [readDurationSeconds(request), readDurationSeconds(backendRequest)];
  return [
    ...unless(whole >= needed, `${path} is cut after ${request}, but ${needed} s are needed`),
    ...unless(
      backend >= needed,
      `${path}: backendRequest cuts after ${backendRequest}, but ${needed} s are needed`,
    ),
    ...unless(backend <= whole, `${path}: backendRequest is above request`),
  ];
}

/** Finds a route without the host of PUBLIC_URL. Browsers send cookies only to the host that set them. */
function findHostFaults({ spec }: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const { publicUrl } = findConfig(objects, 'api')!;
  const host = publicUrl && new URL(publicUrl).hostname;
  return unless(
    host === undefined || spec.hostnames?.includes(host),
    `PUBLIC_URL has host ${host}, but the route has ${spec.hostnames}`,
  );
}

function findPathFaults({ spec }: KubernetesObject): string[] {
  const paths = (spec.rules as RouteRule[]).flatMap(({ matches }) => matches.map(({ path }) => path));
  const has = (type: string, value: string) =>
    paths.some((path) => path.type === type && path.value === value);
  return [
    ...['/api/v1/import', '/api/v1/export', '/web/api/v1/import', '/web/api/v1/export']
      .filter((own) => !has('Exact', own))
      .map((own) => `${own} has no separate route`),
    ...PUBLIC_PATHS.below
      .filter((own) => !has('PathPrefix', own))
      .map((own) => `nothing leads to ${own} and the paths below it`),
    ...PUBLIC_PATHS.exact.filter((own) => !has('Exact', own)).map((own) => `nothing leads to ${own}`),
    ...['/livez', '/readyz', '/metrics']
      .filter((hidden) =>
        paths.some(({ type, value }) => (type === 'Exact' ? hidden === value : hidden.startsWith(value))),
      )
      .map((hidden) => `leads to ${hidden}`),
  ];
}

function findScalingFaults({ spec }: KubernetesObject, objects: readonly KubernetesObject[]): string[] {
  const { minReplicas = 1, maxReplicas, metrics, scaleTargetRef } = spec;
  const deployment = find(objects, 'Deployment', scaleTargetRef.name);
  const cpu = metrics.find((metric: { resource?: { name: string } }) => metric.resource?.name === 'cpu');
  const waiters = metrics.find(
    (metric: { pods?: { metric: { name: string } } }) => metric.pods?.metric.name === 'bookmarks_waiters',
  );
  const target = readQuantity(waiters?.pods.target.averageValue ?? 0);
  const cpuTarget = readQuantity(cpu?.resource.target.averageValue ?? 0);
  const cpuLimit = readQuantity(deployment?.spec.template.spec.containers[0].resources?.limits?.cpu ?? 0);
  const { maxWaiters } = findConfig(objects, 'api')!;
  return [
    ...unless(cpu !== undefined, 'does not follow CPU'),
    ...unless(waiters !== undefined, 'does not follow bookmarks_waiters'),
    ...unless(target <= maxWaiters / 2, `aims at ${target} polls, more than half of MAX_WAITERS`),
    // A process uses at most one core, so its CPU use would never reach a higher target.
    ...unless(cpuTarget <= Math.min(cpuLimit, 1), `aims at ${cpuTarget} of CPU, more than a process can use`),
    ...unless(minReplicas <= maxReplicas, `minReplicas ${minReplicas} is above maxReplicas ${maxReplicas}`),
    ...unless(deployment?.spec.replicas === undefined, 'competes with the replicas of its Deployment'),
  ];
}

/** Applies a check to every object of a kind and adds the object's name to the faults. */
const ofEach =
  (
    kind: string,
    check: (object: KubernetesObject, objects: readonly KubernetesObject[]) => string[],
  ): Rule['check'] =>
  (objects) =>
    ofKind(objects, kind).flatMap((object) =>
      check(object, objects).map((fault) => `${nameOf(object)}: ${fault}`),
    );

export const trafficRules: Rule[] = [
  {
    name: "the route's timeouts are above the long poll, the import and the export",
    check: ofEach('HTTPRoute', ({ spec }, objects) => {
      // Google's gateway ignores the route's timeouts. It uses the policy's for all requests.
      const policy = find(objects, 'GCPBackendPolicy', 'api');
      if (policy === undefined)
        return (spec.rules as RouteRule[]).flatMap((rule) => findTimeoutFaults(rule, objects));
      const { timeoutSec } = policy.spec.default;
      return unless(timeoutSec >= longestExport(), `${nameOf(policy)} cuts after ${timeoutSec} s`);
    }),
  },
  {
    name: 'PUBLIC_URL has the host of the route',
    check: ofEach('HTTPRoute', findHostFaults),
  },
  {
    name: 'all public paths have a route, imports and exports have separate routes, and health and metrics have none',
    check: ofEach('HTTPRoute', findPathFaults),
  },
  {
    name: 'the autoscaler follows CPU and held polls, and nothing else sets the replicas',
    check: ofEach('HorizontalPodAutoscaler', findScalingFaults),
  },
];
