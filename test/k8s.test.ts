import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readObjects } from '../k8s/check/kustomize.ts';
import type { KubernetesObject } from '../k8s/check/objects.ts';
import { listOverlays, readOverlay } from '../k8s/check/overlay.ts';
import {
  findAdapterFaults,
  listAlertingRules,
  listAlerts,
  listMetrics,
} from '../k8s/check/rules/monitoring.ts';
import { restrictedRule } from '../k8s/check/rules/pods.ts';
import { findFaults } from '../k8s/check/rules.ts';
import { validateObject } from '../k8s/check/schemas.ts';
import { container, copyOverlay, pick, pod, variable } from './k8s/overlay-copy.ts';

test.each(listOverlays())('overlay %s is valid and follows every rule', async (overlay) => {
  expect(await findFaults(readOverlay(overlay))).toEqual([]);
});

test('backups can be scheduled next to the production overlay', async () => {
  expect(await findFaults(copyOverlay('production with backups'))).toEqual([]);
});

test('the pod that reads backups is valid, restricted, and mounts the volume', async () => {
  const [reader] = readObjects(readProjectFile('k8s/backups/reader.yaml'));
  expect(await validateObject(reader!)).toEqual([]);
  const { spec } = reader!;
  const claim = pick(copyOverlay('production with backups'), 'PersistentVolumeClaim/backups').metadata.name;
  expect(spec.volumes[0].persistentVolumeClaim.claimName).toBe(claim);
  expect(restrictedRule.check([{ ...reader!, kind: 'Job', spec: { template: reader } }])).toEqual([]);
});

test('a field that is not in its schema is found at any depth', async () => {
  const places: ((objects: KubernetesObject[]) => object)[] = [
    (objects) => pick(objects, 'Deployment/api'),
    (objects) => pick(objects, 'Deployment/api').metadata,
    (objects) => pod(pick(objects, 'Deployment/api')),
    (objects) => container(pick(objects, 'Deployment/api')).readinessProbe.httpGet,
    (objects) => variable(pick(objects, 'Deployment/api'), 'REDIS_URL').valueFrom.secretKeyRef,
    (objects) => pick(objects, 'HTTPRoute/api').spec.rules[2].timeouts,
    (objects) => pick(objects, 'ServiceMonitor/bookmarks').spec.endpoints[0],
    (objects) => pick(objects, 'PrometheusRule/bookmarks').spec.groups[0].rules[3],
    (objects) => pick(objects, 'HorizontalPodAutoscaler/api').spec.behavior.scaleDown,
    (objects) => pick(objects, 'NetworkPolicy/stores').spec.egress[0].ports[0],
    (objects) => pick(objects, 'PodDisruptionBudget/api').spec,
    (objects) => pick(objects, 'Service/api').spec.ports[0],
    (objects) => pick(objects, 'ConfigMap/settings'),
  ];
  for (const place of places) {
    const objects = copyOverlay();
    Object.assign(place(objects), { terminationGracePeriodSecond: 60 });
    expect(await findFaults(objects)).toEqual([
      expect.stringMatching(/terminationGracePeriodSecond: unknown field$/),
    ]);
  }
});

test('values that a schema forbids are found, and an object without a schema is refused', async () => {
  const [api] = [pick(copyOverlay(), 'Deployment/api')];
  container(api).ports[0].containerPort = '3000';
  expect(await validateObject(api)).toEqual([expect.stringContaining('containerPort')]);
  const route = pick(copyOverlay(), 'HTTPRoute/api');
  route.spec.rules[0].timeouts.request = '1 minute';
  expect(await validateObject(route)).toEqual([expect.stringContaining('timeouts/request')]);
  const budget = pick(copyOverlay(), 'PodDisruptionBudget/api');
  budget.apiVersion = 'policy/v2';
  await expect(validateObject(budget)).rejects.toThrow('no schema of policy/v2 PodDisruptionBudget');
});

test('metrics are found in every form of expression that the manifests use', () => {
  expect(
    listMetrics(
      'histogram_quantile(0.99, sum by (le, route) (rate(a_seconds_bucket{route!~"x|b_total"}[$__rate_interval]))) / max(c) > 1 and absent(up{job="api"})',
    ),
  ).toEqual(['a_seconds', 'c', 'up']);
  expect(listMetrics('count(count by (version) (build_info)) > 1')).toEqual(['build_info']);
});

test('an invalid YAML file is refused, and so is one with a repeated key', () => {
  expect(() => readObjects('a: [')).toThrow();
  expect(() => readObjects('a: 1\na: 2')).toThrow('unique');
});

test('the local overlay contains only objects that can be applied again', () => {
  // If the overlay contained the migration's Job, a new setting or image would change the template of this Job.
  // Kubernetes refuses such a change.
  expect(readOverlay('local').filter(({ kind }) => kind === 'Job')).toEqual([]);
});

const readProjectFile = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

test("the alerts' tests show for every alert when it fires and when it does not", () => {
  const { tests }: { tests: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }[] } = parse(
    readProjectFile('k8s/monitoring/alerts.test.yaml'),
  );
  const cases = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  for (const alert of listAlerts(copyOverlay())) {
    const outcomes = cases
      .filter(({ alertname }) => alertname === alert)
      .map(({ exp_alerts }) => exp_alerts.length > 0);
    expect(new Set(outcomes), alert).toEqual(new Set([true, false]));
  }
});

test('a metrics adapter is refused if it serves another series, not each pod, or nothing', () => {
  const text = readProjectFile('k8s/monitoring/prometheus-adapter.yaml');
  const objects = copyOverlay();
  expect(findAdapterFaults(objects, text)).toEqual([]);
  for (const [from, to] of [
    ['bookmarks_waiters{', 'bookmarks_waiters_limit{'],
    [',pod!=""', ''],
    ['<<.LabelMatchers>>', ''],
    ['  custom:', '  external:'],
  ] as const) {
    expect(text).toContain(from);
    expect(findAdapterFaults(objects, text.replace(from, to)), to).not.toEqual([]);
  }
});

test('every alert links to a section of the runbook that names it with its severity', () => {
  const sections = readProjectFile('docs/runbook.md').split(/^## /m);
  const alerts = listAlertingRules(copyOverlay()).filter(({ alert }) => alert !== undefined);
  expect(alerts.length).toBeGreaterThan(20);
  for (const { alert, labels, annotations } of alerts) {
    const anchor = annotations?.runbook_url?.split('/docs/runbook.md#')[1];
    const section = sections.find(
      (text) => text.split('\n')[0]!.toLowerCase().replaceAll(' ', '-') === anchor,
    );
    expect(section, alert).toContain(`\`${alert}\` (${labels?.severity})`);
  }
});
