import { type Breakage, container, set, variable } from '../overlay-copy.ts';

/** Mistakes in variables and settings. */
export const ENVIRONMENT: Breakage[] = [
  ['knows every variable', 'ConfigMap/settings', set('SYNC_WAIT_SECONDS', '31')],
  ['knows every variable', 'ConfigMap/settings', set('MAX_WAITER', '10')],
  [
    'knows every variable',
    'Deployment/api',
    (api) => container(api).env.push({ name: 'NODE_OPTION', value: '' }),
  ],
  [
    'knows every variable',
    'Deployment/api',
    (api) => (variable(api, 'OTEL_RESOURCE_ATTRIBUTES').value = 'pod'),
  ],
  ['ports are those', 'ConfigMap/settings', set('METRICS_PORT', '9465')],
  ['ports are those', 'Deployment/api', (api) => (container(api).ports[0].containerPort = 8080)],
  ['listens where other pods', 'ConfigMap/settings', set('HOST', '127.0.0.1')],
  ['listens where other pods', 'ConfigMap/settings', ({ data }) => delete data.NODE_ENV],
  [
    'share one Redis',
    'Deployment/worker',
    (worker) => container(worker).env.push({ name: 'REDIS_PREFIX', value: 'other' }),
  ],
  [
    'share one Redis',
    'Deployment/worker',
    (worker) => (variable(worker, 'DATABASE_URL').valueFrom.secretKeyRef.key = 'MIGRATE_DATABASE_URL'),
  ],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', '10.0.0.0/8')],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', '10.1.2.0/24, 10.1.0.0/23')],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', 'uniquelocal')],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', '2001:db8::/32')],
  ['only the gateway may name', 'ConfigMap/settings', ({ data }) => delete data.TRUST_PROXY],
  ...['--max-old-space-size=4096', '--max-old-space-size=1900', '--max-old-space-size=64', '--inspect'].map(
    (value): Breakage => [
      'as it was built',
      'Deployment/api',
      (api) => container(api).env.push({ name: 'NODE_OPTIONS', value }),
    ],
  ),
  ['as it was built', 'Deployment/api', (api) => (container(api).command = ['node', '--inspect'])],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', '5')],
  ['only the gateway may name', 'ConfigMap/settings', set('TRUST_PROXY', '0')],
];
