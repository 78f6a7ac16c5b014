import { type KubernetesObject, nameOf } from '../objects.ts';
import { readDurationSeconds, readQuantity } from '../quantity.ts';
import { findConfig } from './environment.ts';
import { find, ofKind, type Rule } from './rule.ts';

/** A held poll is answered up to 3 s after its time, and the answer must still travel. */
const ROOM_SECONDS = 10;

interface RouteRule {
  matches: { path: { type: string; value: string } }[];
  timeouts?: { request?: string };
}

function neededSeconds({ matches }: RouteRule, objects: readonly KubernetesObject[]): number {
  const { syncWaitSeconds, importWaitSeconds, requestTimeoutSeconds } = findConfig(objects, 'api')!;
  const isImport = matches.some(({ path }) => path.value.endsWith('/import'));
  return (isImport ? requestTimeoutSeconds + importWaitSeconds : syncWaitSeconds) + ROOM_SECONDS;
}

export const trafficRules: Rule[] = [
  {
    name: "the route's timeouts are above the long poll, the import and the export",
    check: (objects) =>
      ofKind(objects, 'HTTPRoute').flatMap((route) =>
        (route.spec.rules as RouteRule[]).flatMap((rule) => {
          const path = rule.matches[0]!.path.value;
          const timeout = rule.timeouts?.request;
          if (timeout === undefined) return [`${nameOf(route)}: ${path} has the gateway's own timeout`];
          const needed = neededSeconds(rule, objects);
          return readDurationSeconds(timeout) >= needed
            ? []
            : [`${nameOf(route)}: ${path} is cut after ${timeout}, needed are ${needed} s`];
        }),
      ),
  },
  {
    name: 'imports and exports have a route of their own, and health and metrics have none',
    check: (objects) =>
      ofKind(objects, 'HTTPRoute').flatMap((route) => {
        const paths = (route.spec.rules as RouteRule[]).flatMap(({ matches }) =>
          matches.map(({ path }) => path),
        );
        return [
          ...['/api/v1/import', '/api/v1/export']
            .filter((own) => !paths.some(({ type, value }) => type === 'Exact' && value === own))
            .map((own) => `${nameOf(route)}: ${own} has no route of its own`),
          ...['/livez', '/readyz', '/metrics']
            .filter((hidden) => paths.some(({ value }) => hidden.startsWith(value)))
            .map((hidden) => `${nameOf(route)}: leads to ${hidden}`),
        ];
      }),
  },
  {
    name: 'there is no Ingress: its common controller is no longer maintained',
    check: (objects) => ofKind(objects, 'Ingress').map((ingress) => `${nameOf(ingress)}: use an HTTPRoute`),
  },
  {
    name: 'the autoscaler follows CPU and held polls, and alone says how many replicas',
    check: (objects) =>
      ofKind(objects, 'HorizontalPodAutoscaler').flatMap((autoscaler) => {
        const { minReplicas, metrics, scaleTargetRef } = autoscaler.spec;
        const cpu = metrics.find(
          (metric: { resource?: { name: string } }) => metric.resource?.name === 'cpu',
        );
        const waiters = metrics.find(
          (metric: { pods?: { metric: { name: string } } }) =>
            metric.pods?.metric.name === 'bookmarks_waiters',
        );
        const target = readQuantity(waiters?.pods.target.averageValue ?? 0);
        const { maxWaiters } = findConfig(objects, 'api')!;
        const faults = [
          ...(cpu ? [] : ['does not follow CPU']),
          ...(waiters ? [] : ['does not follow bookmarks_waiters']),
          ...(target <= maxWaiters / 2 ? [] : [`aims at ${target} polls, more than half of MAX_WAITERS`]),
          ...(minReplicas >= 2 ? [] : ['may leave a single replica']),
          ...(find(objects, 'Deployment', scaleTargetRef.name)?.spec.replicas === undefined
            ? []
            : ['competes with the replicas of its Deployment']),
        ];
        return faults.map((fault) => `${nameOf(autoscaler)}: ${fault}`);
      }),
  },
  {
    name: 'what no network policy allows is denied',
    check: (objects) => {
      const denies = ofKind(objects, 'NetworkPolicy').some(
        ({ spec }) =>
          Object.keys(spec.podSelector).length === 0 &&
          ['Ingress', 'Egress'].every((type) => spec.policyTypes?.includes(type)) &&
          spec.ingress === undefined &&
          spec.egress === undefined,
      );
      return denies ? [] : ['there is no NetworkPolicy that denies by default'];
    },
  },
  {
    name: 'no network policy opens more than it names',
    check: (objects) =>
      ofKind(objects, 'NetworkPolicy').flatMap((policy) => {
        const openings: { from?: unknown[]; to?: unknown[]; ports?: unknown[] }[] = [
          ...(policy.spec.ingress ?? []),
          ...(policy.spec.egress ?? []),
        ];
        return openings
          .filter(({ from, to, ports }) => !(from ?? to)?.length || !ports?.length)
          .map(() => `${nameOf(policy)}: opens to everyone, or every port`);
      }),
  },
];
