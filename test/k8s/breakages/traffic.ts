import { type Breakage, set } from '../overlay-copy.ts';

/** Mistakes about routes and scaling. */
export const TRAFFIC: Breakage[] = [
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.request = '30s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[0].timeouts.request = '60s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => delete spec.rules[1].timeouts],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.backendRequest = '15s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.backendRequest = '2m')],
  ['route', 'HTTPRoute/api', ({ spec }) => spec.rules.shift()],
  ['whole API has a route', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].matches[0].path.value = '/')],
  ['whole API has a route', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].matches[0].path.value = '/api/v2')],
  [
    'no Ingress',
    'HTTPRoute/api',
    (_, objects) =>
      objects.push({
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: { name: 'api', namespace: 'bookmarks' },
        spec: { defaultBackend: { service: { name: 'api', port: { number: 80 } } } },
      }),
  ],
  ['open to the world', 'Service/api', ({ spec }) => (spec.type = 'LoadBalancer')],
  ['open to the world', 'Service/pgbouncer', ({ spec }) => (spec.type = 'NodePort')],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.pop()],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.shift()],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.minReplicas = 1)],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.maxReplicas = 2)],
  [
    'autoscaler follows',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.metrics[0].resource.target.averageValue = '1500m'),
  ],
  ['autoscaler follows', 'ConfigMap/settings', set('MAX_WAITERS', '5000')],
  ['autoscaler follows', 'Deployment/api', ({ spec }) => (spec.replicas = 3)],
];
