import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readObjects } from '../k8s/check/kustomize.ts';
import { checkRules } from '../k8s/check/promtool.ts';
import { findFaults, RULES } from '../k8s/check/rules.ts';
import { PUBLIC_PATHS } from '../src/http/public-paths.ts';
import { BACKUPS } from './k8s/breakages/backups.ts';
import { CITUS } from './k8s/breakages/citus.ts';
import { ENVIRONMENT } from './k8s/breakages/environment.ts';
import { FLOWS } from './k8s/breakages/flows.ts';
import { MONITORING } from './k8s/breakages/monitoring.ts';
import { PLATFORMS } from './k8s/breakages/platforms.ts';
import { PODS } from './k8s/breakages/pods.ts';
import { POOLER } from './k8s/breakages/pooler.ts';
import { REFERENCES } from './k8s/breakages/references.ts';
import { ROLL_OUT } from './k8s/breakages/roll-out.ts';
import { TRAFFIC } from './k8s/breakages/traffic.ts';
import {
  type Breakage,
  type Change,
  container,
  copyOverlay,
  edit,
  type Overlay,
  pick,
  set,
} from './k8s/overlay-copy.ts';
import { provide } from './support/programs.ts';

/** Possible mistakes in the manifests. Each violates a rule, and the check must report that rule. */

const BREAKAGES: Breakage[] = [
  ...PODS,
  ...ENVIRONMENT,
  ...ROLL_OUT,
  ...REFERENCES,
  ...TRAFFIC,
  ...FLOWS,
  ...POOLER,
  ...MONITORING,
  ...BACKUPS,
  ...CITUS,
  ...PLATFORMS,
];

test('every rule has at least one mistake that violates it', () => {
  const unbroken = RULES.filter(({ name }) => !BREAKAGES.some(([rule]) => name.includes(rule)));
  expect(unbroken.map(({ name }) => name)).toEqual([]);
});

test.each(BREAKAGES.map(([rule, object, change, overlay], n) => ({ n, rule, object, change, overlay })))(
  'rule "$rule" reports its mistake ($n: $object)',
  async ({ rule, object, change, overlay }) => {
    const objects = copyOverlay(overlay);
    change(pick(objects, object), objects);
    const faults = await findFaults(objects);
    const named = RULES.filter(({ name }) => name.includes(rule)).map(({ name }) => name);
    expect(faults.filter((fault) => named.some((name) => fault.startsWith(`${name}: `)))).not.toEqual([]);
  },
);

test('a migration that connects to other hosts than the coordinator is refused, and the error names its hosts', async () => {
  const objects = copyOverlay('production-citus');
  edit(
    'MIGRATE_DATABASE_URL',
    ':5432',
    ':5432,worker-1.example.org:5432',
  )(pick(objects, 'Secret/connections'), objects);
  const named = 'names postgres.example.org and worker-1.example.org: only the coordinator may migrate';
  expect(await findFaults(objects)).toContainEqual(expect.stringContaining(named));
});

/** Changes that are correct, but that an overly strict check would refuse. */
const RIGHT: [what: string, object: string, change: Change, overlay?: Overlay][] = [
  ['a disruption budget in per cent', 'PodDisruptionBudget/api', ({ spec }) => (spec.maxUnavailable = '50%')],
  [
    'a disruption budget with minAvailable',
    'PodDisruptionBudget/worker',
    ({ spec }) => Object.assign(spec, { maxUnavailable: undefined, minAvailable: 1 }),
  ],
  [
    'further options of Node',
    'Deployment/api',
    (api) =>
      container(api).env.push({
        name: 'NODE_OPTIONS',
        value: '--max-old-space-size=1536 --enable-source-maps',
      }),
  ],
  ["a setting for libuv's threads", 'ConfigMap/settings', set('UV_THREADPOOL_SIZE', '8')],
  [
    "the gateway's own addresses",
    'ConfigMap/settings',
    set('TRUST_PROXY', '10.1.2.3, 10.1.4.0/24, 2001:db8::/64'),
  ],
  ['one more proxy hop', 'ConfigMap/settings', set('TRUST_PROXY', '2')],
  ['a port given by name', 'NetworkPolicy/requests', ({ spec }) => (spec.ingress[0].ports[0].port = 'http')],
  [
    'a probe with a port number',
    'Deployment/api',
    (api) => (container(api).livenessProbe.httpGet.port = 3000),
  ],
  ['a surge given as a number', 'Deployment/api', (api) => (api.spec.strategy.rollingUpdate.maxSurge = 2)],
  [
    'a backend timeout below the request timeout',
    'HTTPRoute/api',
    ({ spec }) => (spec.rules[2].timeouts.backendRequest = '55s'),
  ],
  [
    'a private certificate authority for Redis',
    'Secret/connections',
    ({ stringData }) =>
      Object.assign(stringData, { REDIS_CA_FILE: '/etc/redis/ca.crt', 'redis-ca.crt': 'PEM' }),
  ],
  [
    'a CPU limit in whole cores',
    'Deployment/worker',
    (worker) => (container(worker).resources.limits.cpu = 2),
  ],
];

test.each(RIGHT)('%s is accepted', async (_, object, change, overlay) => {
  const objects = copyOverlay(overlay);
  change(pick(objects, object), objects);
  expect(await findFaults(objects)).toEqual([]);
});

test('an external trace collector is accepted with a rule that excludes all private networks', async () => {
  const objects = copyOverlay();
  pick(objects, 'ConfigMap/settings').data.OTEL_EXPORTER_OTLP_ENDPOINT = 'https://otlp.example.org';
  const opening = pick(objects, 'NetworkPolicy/monitoring').spec.egress[0];
  opening.ports[0].port = 443;
  const except = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'];
  opening.to = [{ ipBlock: { cidr: '0.0.0.0/0', except } }];
  expect(await findFaults(objects)).toEqual([]);
  opening.to[0].ipBlock.except.pop();
  expect(await findFaults(objects)).not.toEqual([]);
});

test('signing in through a provider needs its Secret, and an egress rule for the api only', async () => {
  const example = readObjects(readFileSync('k8s/overlays/production/sign-in.example.yaml', 'utf8'));
  expect(await findFaults([...copyOverlay(), ...example])).toEqual([]);
  const [secret, policy] = [pick(example, 'Secret/sign-in'), pick(example, 'NetworkPolicy/sign-in')];
  expect(await findFaults([...copyOverlay(), secret])).not.toEqual([]);
  expect(await findFaults([...copyOverlay(), policy])).not.toEqual([]);
  policy.spec.egress[0].to[0].ipBlock.except.shift();
  expect(await findFaults([...copyOverlay(), ...example])).not.toEqual([]);
});

test.each(['production', 'production-aws', 'production-citus', 'production-google'] as const)(
  'every public path of %s without a route is reported by its name',
  (overlay) => {
    const { exact, below } = PUBLIC_PATHS;
    for (const path of [...exact, ...below]) {
      const objects = copyOverlay(overlay);
      for (const rule of pick(objects, 'HTTPRoute/api').spec.rules)
        rule.matches = rule.matches.filter((match: { path: { value: string } }) => match.path.value !== path);
      const reported = RULES.flatMap(({ name, check }) =>
        name.startsWith('all public paths') ? check(objects) : [],
      );
      expect(reported).toEqual([expect.stringContaining(`nothing leads to ${path}`)]);
    }
  },
);

test('a service without a trace collector needs no egress rule for one', async () => {
  const objects = copyOverlay();
  delete pick(objects, 'ConfigMap/settings').data.OTEL_EXPORTER_OTLP_ENDPOINT;
  delete pick(objects, 'NetworkPolicy/monitoring').spec.egress;
  expect(await findFaults(objects)).toEqual([]);
});

test('promtool finds faults that our own rules cannot find', async () => {
  await provide('promtool');
  const broken: [string, Change][] = [
    ['PrometheusRule/bookmarks', ({ spec }) => (spec.groups[1].rules[0].expr = 'sum by (namespace) up')],
    ['PrometheusRule/bookmarks', ({ spec }) => (spec.groups[1].rules[0].for = 'soon')],
    [
      'PrometheusRule/bookmarks',
      ({ spec }) => (spec.groups[1].rules[0].annotations.summary = '{{ $labels.namespace'),
    ],
    ['ConfigMap/dashboard', edit('bookmarks.json', 'sum by (pod) (', 'sum by pod (')],
    // An alert that fires later than its test expects.
    [
      'PrometheusRule/bookmarks',
      ({ spec }) => {
        const rules: { alert: string; for?: string }[] = spec.groups[1].rules;
        rules.find(({ alert }) => alert === 'BookmarksDatabaseUnreachable')!.for = '5m';
      },
    ],
  ];
  for (const [object, change] of broken) {
    const objects = copyOverlay();
    change(pick(objects, object), objects);
    expect(checkRules(objects)).toEqual([expect.stringContaining('promtool')]);
  }
});
