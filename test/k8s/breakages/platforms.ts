import { type Breakage, pod, remove } from '../overlay-copy.ts';

/** Mistakes in the settings for managed platforms. */
export const PLATFORMS: Breakage[] = [
  ['every field', 'GCPBackendPolicy/api', ({ spec }) => (spec.default.timeoutSec = 30), 'production-google'],
  ["route's timeouts", 'GCPBackendPolicy/api', remove, 'production-google'],
  [
    'every field',
    'HealthCheckPolicy/api',
    ({ spec }) => (spec.default.config.httpHealthCheck.requestPath = '/'),
    'production-google',
  ],
  [
    'allow all needed connections',
    'NetworkPolicy/requests',
    ({ spec }) => spec.ingress[0].from.pop(),
    'production-google',
  ],
  [
    'every field',
    'TargetGroupConfiguration/api',
    ({ spec }) => (spec.defaultConfiguration.targetType = 'instance'),
    'production-aws',
  ],
  [
    'allow nothing else',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.ingress[0].from[0].ipBlock.cidr = '10.31.0.0/24'),
    'production-aws',
  ],
  [
    'grace period',
    'Deployment/api',
    (api) => (pod(api).terminationGracePeriodSeconds = 55),
    'production-aws',
  ],
];
