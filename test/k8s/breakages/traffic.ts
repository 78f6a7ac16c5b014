import { type Breakage, set } from '../overlay-copy.ts';

/** Mistakes in routes and scaling. */
export const TRAFFIC: Breakage[] = [
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.request = '30s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[0].timeouts.request = '60s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => delete spec.rules[1].timeouts],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.backendRequest = '15s')],
  ["route's timeouts", 'HTTPRoute/api', ({ spec }) => (spec.rules[2].timeouts.backendRequest = '2m')],
  ['route', 'HTTPRoute/api', ({ spec }) => spec.rules.shift()],
  [
    'all public paths have a route',
    'HTTPRoute/api',
    ({ spec }) => (spec.rules[2].matches[0].path.value = '/'),
  ],
  [
    'all public paths have a route',
    'HTTPRoute/api',
    ({ spec }) => (spec.rules[2].matches[0].path.value = '/api/v2'),
  ],
  [
    'every field',
    'HTTPRoute/api',
    (_, objects) =>
      objects.push({
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: { name: 'api', namespace: 'bookmarks' },
        spec: { defaultBackend: { service: { name: 'api', port: { number: 80 } } } },
      }),
  ],
  ['every field', 'Service/api', ({ spec }) => (spec.type = 'LoadBalancer')],
  ['every field', 'Service/pgbouncer', ({ spec }) => (spec.type = 'NodePort')],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.pop()],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => spec.metrics.shift()],
  ['every field', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.minReplicas = 1)],
  ['autoscaler follows', 'HorizontalPodAutoscaler/api', ({ spec }) => (spec.maxReplicas = 2)],
  [
    'autoscaler follows',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.metrics[0].resource.target.averageValue = '1500m'),
  ],
  ['autoscaler follows', 'ConfigMap/settings', set('MAX_WAITERS', '5000')],
  ['autoscaler follows', 'Deployment/api', ({ spec }) => (spec.replicas = 3)],
  ['host of the route', 'ConfigMap/settings', set('PUBLIC_URL', 'https://other.example.org')],
  ['every field', 'Service/api', ({ spec }) => (spec.sessionAffinity = 'ClientIP')],
  ['every field', 'Service/api', ({ spec }) => (spec.publishNotReadyAddresses = true)],
  [
    'every field',
    'HTTPRoute/api',
    ({ spec }) =>
      (spec.rules[2].filters = [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['Authorization'] } },
      ]),
  ],
  ['every field', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].retry = { codes: [503], attempts: 3 })],
  ['every field', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].backendRefs[0].weight = 0)],
  ['every field', 'HTTPRoute/api', ({ spec }) => (spec.rules[2].matches[0].method = 'GET')],
  [
    'every field',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.metrics[0].resource.target.averageValue = '10m'),
  ],
  [
    'every field',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.behavior.scaleDown.stabilizationWindowSeconds = 0),
  ],
  ['every field', 'HorizontalPodAutoscaler/api', ({ spec }) => delete spec.behavior],
];
