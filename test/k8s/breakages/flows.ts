import { type Breakage, edit, remove, set } from '../overlay-copy.ts';

const world = { ipBlock: { cidr: '0.0.0.0/0' } };

/**
 * Mistakes in network policies: needed connections that are not allowed, and allowed connections that are not needed.
 */
export const FLOWS: Breakage[] = [
  ['deny by default', 'NetworkPolicy/default-deny', remove],
  ['deny by default', 'NetworkPolicy/default-deny', ({ spec }) => spec.policyTypes.pop(), 'local'],
  ['allow all needed connections', 'NetworkPolicy/names', remove],
  ['allow all needed connections', 'NetworkPolicy/names', ({ spec }) => spec.egress[0].ports.shift()],
  [
    'allow all needed connections',
    'NetworkPolicy/names',
    ({ spec }) => (spec.egress[0].ports[0].port = 5353),
  ],
  [
    'allow all needed connections',
    'NetworkPolicy/names',
    ({ spec }) => (spec.egress[0].ports[0].protocol = 'TCP'),
  ],
  [
    'allow all needed connections',
    'NetworkPolicy/names',
    ({ spec }) =>
      (spec.egress[0].to[0].namespaceSelector.matchLabels = { 'kubernetes.io/metadata.name': 'dns' }),
  ],
  ['allow all needed connections', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.egress.shift()],
  ['allow all needed connections', 'NetworkPolicy/stores', ({ spec }) => spec.egress.pop()],
  ['allow all needed connections', 'NetworkPolicy/stores', ({ spec }) => spec.egress.shift()],
  [
    'allow all needed connections',
    'NetworkPolicy/stores',
    ({ spec }) => (spec.podSelector.matchExpressions[0].values = ['api']),
  ],
  ['allow all needed connections', 'NetworkPolicy/stores', ({ spec }) => (spec.policyTypes = ['Ingress'])],
  ['allow all needed connections', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.egress.pop()],
  ['allow all needed connections', 'NetworkPolicy/pgbouncer', ({ spec }) => spec.ingress.shift()],
  [
    'allow all needed connections',
    'NetworkPolicy/pgbouncer',
    ({ spec }) => (spec.ingress[0].ports[0].port = 5432),
  ],
  [
    'allow all needed connections',
    'NetworkPolicy/pgbouncer',
    ({ spec }) =>
      (spec.ingress[0].from[0].podSelector = { matchLabels: { 'app.kubernetes.io/component': 'api' } }),
  ],
  ['allow all needed connections', 'NetworkPolicy/migrate', remove],
  [
    'allow all needed connections',
    'NetworkPolicy/migrate',
    ({ spec }) => (spec.egress[0].to[0].ipBlock.cidr = '10.30.0.0/24'),
  ],
  ['allow all needed connections', 'NetworkPolicy/monitoring', ({ spec }) => delete spec.egress],
  ['allow all needed connections', 'NetworkPolicy/monitoring', ({ spec }) => delete spec.ingress],
  [
    'allow all needed connections',
    'NetworkPolicy/monitoring',
    ({ spec }) => (spec.ingress[0].ports[0].port = 9090),
  ],
  ['allow all needed connections', 'NetworkPolicy/requests', remove],
  [
    'allow all needed connections',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.ingress[0].ports[0].port = 80),
  ],
  [
    'allow all needed connections',
    'NetworkPolicy/requests',
    ({ spec }) =>
      (spec.ingress[0].from[0].namespaceSelector.matchLabels = { 'kubernetes.io/metadata.name': 'ingress' }),
  ],
  ['allow all needed connections', 'HTTPRoute/api', ({ spec }) => (spec.parentRefs[0].namespace = 'edge')],
  ['allow all needed connections', 'Secret/connections', edit('REDIS_URL', ':6379', ':6380')],
  ['allow all needed connections', 'Secret/connections', edit('DATABASE_URL', '@pgbouncer:', '@pooler:')],
  ['allow all needed connections', 'Secret/connections', edit('DATABASE_URL', ':6432', ':5432')],
  [
    'allow all needed connections',
    'ConfigMap/settings',
    set('OTEL_EXPORTER_OTLP_ENDPOINT', 'https://otlp.example.org'),
  ],
  ['allow all needed connections', 'NetworkPolicy/redis', remove, 'local'],
  ['allow all needed connections', 'NetworkPolicy/stores', ({ spec }) => spec.egress.shift(), 'local'],
  ['allow nothing else', 'NetworkPolicy/requests', ({ spec }) => delete spec.ingress[0].from],
  ['allow nothing else', 'NetworkPolicy/stores', ({ spec }) => delete spec.egress[0].ports],
  ['allow nothing else', 'NetworkPolicy/stores', ({ spec }) => spec.egress[1].to.push(world)],
  [
    'allow nothing else',
    'NetworkPolicy/stores',
    ({ spec }) => spec.egress.push({ to: [world], ports: [{ protocol: 'TCP', port: 443 }] }),
  ],
  [
    'allow nothing else',
    'NetworkPolicy/stores',
    ({ spec }) => (spec.egress[1].to[0].ipBlock.cidr = '10.0.0.0/8'),
  ],
  ['allow nothing else', 'NetworkPolicy/requests', ({ spec }) => spec.ingress[0].from.push(world)],
  [
    'allow nothing else',
    'NetworkPolicy/requests',
    ({ spec }) => spec.ingress[0].from.push({ podSelector: {} }),
  ],
  [
    'allow nothing else',
    'NetworkPolicy/requests',
    ({ spec }) => (spec.ingress[0].from = [{ namespaceSelector: {} }]),
  ],
  ['allow nothing else', 'NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].endPort = 9464)],
  ['allow nothing else', 'NetworkPolicy/stores', ({ spec }) => (spec.podSelector = {})],
  ['allow nothing else', 'ConfigMap/settings', ({ data }) => delete data.OTEL_EXPORTER_OTLP_ENDPOINT],
  [
    'allow nothing else',
    'NetworkPolicy/postgres',
    ({ spec }) => (spec.ingress[0].from = [{ podSelector: {} }]),
    'local',
  ],
];
