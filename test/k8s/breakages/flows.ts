import { type Breakage, edit, remove, set } from '../overlay-copy.ts';

const world = { ipBlock: { cidr: '0.0.0.0/0' } };

/** Mistakes about ways that must be open, and ways that must not. */
export const FLOWS: Breakage[] = [
  ['allows is denied', 'NetworkPolicy/default-deny', remove],
  ['allows is denied', 'NetworkPolicy/default-deny', ({ spec }) => spec.policyTypes.pop(), 'local'],
  ['must reach somebody', 'NetworkPolicy/names', remove],
  ['must reach somebody', 'NetworkPolicy/names', ({ spec }) => spec.egress[0].ports.shift()],
  ['must reach somebody', 'NetworkPolicy/names', ({ spec }) => (spec.egress[0].ports[0].port = 5353)],
  ['must reach somebody', 'NetworkPolicy/names', ({ spec }) => (spec.egress[0].ports[0].protocol = 'TCP')],
  [
    'must reach somebody',
    'NetworkPolicy/names',
    ({ spec }) =>
      (spec.egress[0].to[0].namespaceSelector.matchLabels = { 'kubernetes.io/metadata.name': 'dns' }),
  ],
  ['must reach somebody', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.egress.shift()],
  ['must reach somebody', 'NetworkPolicy/stores', ({ spec }) => spec.egress.pop()],
  ['must reach somebody', 'NetworkPolicy/stores', ({ spec }) => spec.egress.shift()],
  [
    'must reach somebody',
    'NetworkPolicy/stores',
    ({ spec }) => (spec.podSelector.matchExpressions[0].values = ['api']),
  ],
  ['must reach somebody', 'NetworkPolicy/stores', ({ spec }) => (spec.policyTypes = ['Ingress'])],
  ['must reach somebody', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.egress.pop()],
  ['must reach somebody', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.ingress.shift()],
  ['must reach somebody', 'NetworkPolicy/pgbouncer', ({ spec }) => (spec.ingress[0].ports[0].port = 5432)],
  [
    'must reach somebody',
    'NetworkPolicy/pgbouncer',
    ({ spec }) =>
      (spec.ingress[0].from[0].podSelector = { matchLabels: { 'app.kubernetes.io/component': 'api' } }),
  ],
  ['must reach somebody', 'NetworkPolicy/migrate', remove],
  [
    'must reach somebody',
    'NetworkPolicy/migrate',
    ({ spec }) => (spec.egress[0].to[0].ipBlock.cidr = '10.30.0.0/24'),
  ],
  ['must reach somebody', 'NetworkPolicy/monitoring', ({ spec }) => delete spec.egress],
  ['must reach somebody', 'NetworkPolicy/monitoring', ({ spec }) => delete spec.ingress],
  ['must reach somebody', 'NetworkPolicy/monitoring', ({ spec }) => (spec.ingress[0].ports[0].port = 9090)],
  ['must reach somebody', 'NetworkPolicy/requests', remove],
  ['must reach somebody', 'NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].port = 80)],
  [
    'must reach somebody',
    'NetworkPolicy/requests',
    ({ spec }) =>
      (spec.ingress[0].from[0].namespaceSelector.matchLabels = { 'kubernetes.io/metadata.name': 'ingress' }),
  ],
  ['must reach somebody', 'HTTPRoute/api', ({ spec }) => (spec.parentRefs[0].namespace = 'edge')],
  ['must reach somebody', 'Secret/connections', edit('REDIS_URL', ':6379', ':6380')],
  ['must reach somebody', 'Secret/connections', edit('DATABASE_URL', '@pgbouncer:', '@pooler:')],
  ['must reach somebody', 'Secret/connections', edit('DATABASE_URL', ':6432', ':5432')],
  [
    'must reach somebody',
    'ConfigMap/settings',
    set('OTEL_EXPORTER_OTLP_ENDPOINT', 'https://otlp.example.org'),
  ],
  ['must reach somebody', 'NetworkPolicy/redis', remove, 'local'],
  ['must reach somebody', 'NetworkPolicy/stores', ({ spec }) => spec.egress.shift(), 'local'],
  ['open nothing beyond', 'NetworkPolicy/requests', ({ spec }) => delete spec.ingress[0].from],
  ['open nothing beyond', 'NetworkPolicy/stores', ({ spec }) => delete spec.egress[0].ports],
  ['open nothing beyond', 'NetworkPolicy/stores', ({ spec }) => spec.egress[1].to.push(world)],
  [
    'open nothing beyond',
    'NetworkPolicy/stores',
    ({ spec }) => spec.egress.push({ to: [world], ports: [{ protocol: 'TCP', port: 443 }] }),
  ],
  [
    'open nothing beyond',
    'NetworkPolicy/stores',
    ({ spec }) => (spec.egress[1].to[0].ipBlock.cidr = '10.0.0.0/8'),
  ],
  ['open nothing beyond', 'NetworkPolicy/requests', ({ spec }) => spec.ingress[0].from.push(world)],
  [
    'open nothing beyond',
    'NetworkPolicy/requests',
    ({ spec }) => spec.ingress[0].from.push({ podSelector: {} }),
  ],
  [
    'open nothing beyond',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.ingress[0].from = [{ namespaceSelector: {} }]),
  ],
  ['open nothing beyond', 'NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].endPort = 9464)],
  ['open nothing beyond', 'NetworkPolicy/stores', ({ spec }) => (spec.podSelector = {})],
  ['open nothing beyond', 'ConfigMap/settings', ({ data }) => delete data.OTEL_EXPORTER_OTLP_ENDPOINT],
  [
    'open nothing beyond',
    'NetworkPolicy/postgres',
    ({ spec }) => (spec.ingress[0].from = [{ podSelector: {} }]),
    'local',
  ],
];
