import { collectDefaultMetrics, Registry } from 'prom-client';
import { METRIC_NAMES } from '../../../src/observability/metrics.ts';
import { type KubernetesObject, nameOf, walk } from '../objects.ts';
import { find, ofKind, type Rule } from './rule.ts';

/** Prometheus makes it at each scrape. */
const OF_PROMETHEUS = ['up'];

/** Words of PromQL that look like metrics where no parenthesis follows. */
const KEYWORDS = [
  'by',
  'without',
  'and',
  'or',
  'unless',
  'on',
  'ignoring',
  'bool',
  'offset',
  'group_left',
  'group_right',
];

/** All that the service exports: its own, and those of Node and the process. */
export function listExportedMetrics(): Set<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const ofNode = registry.getMetricsAsArray().map(({ name }) => name);
  registry.clear();
  return new Set([...METRIC_NAMES, ...ofNode, ...OF_PROMETHEUS]);
}

/** Metrics that a PromQL expression reads, histograms by their own name. */
export function listMetrics(expression: string): string[] {
  const bare = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\b(by|without|on|ignoring) *\([^)]*\)/g, '');
  const words = bare.match(/[a-zA-Z_:][\w:]*(?! *\()\b(?! *\()/g) ?? [];
  return words
    .filter((word) => !KEYWORDS.includes(word))
    .map((word) => word.replace(/_(bucket|sum|count)$/, ''));
}

/** Every expression of dashboards and alerts, and the metrics of autoscalers. */
export function listExpressions(objects: readonly KubernetesObject[]): string[] {
  const dashboards = ofKind(objects, 'ConfigMap')
    .filter(({ metadata }) => metadata.labels?.grafana_dashboard === '1')
    .flatMap(({ data }) => Object.values(data as Record<string, string>).map((text) => JSON.parse(text)));
  const alerts = ofKind(objects, 'PrometheusRule');
  const autoscaled = ofKind(objects, 'HorizontalPodAutoscaler').flatMap(({ spec }) => spec.metrics);
  const expressions = [...walk([...dashboards, ...alerts])].map((part) => part.expr);
  const podMetrics = autoscaled.map((metric) => metric.pods?.metric.name);
  return [...expressions, ...podMetrics].filter((text) => typeof text === 'string');
}

interface Alert {
  alert: string;
  labels?: { severity?: string };
  annotations?: { summary?: string };
}

export const monitoringRules: Rule[] = [
  {
    name: 'dashboards, alerts and autoscalers read metrics that exist',
    check: (objects) => {
      const exported = listExportedMetrics();
      const read = new Set(listExpressions(objects).flatMap(listMetrics));
      return [...read].filter((name) => !exported.has(name)).map((name) => `there is no metric ${name}`);
    },
  },
  {
    name: 'where there are alerts, every metric of the service is on the dashboard',
    check: (objects) => {
      if (ofKind(objects, 'PrometheusRule').length === 0) return [];
      const dashboard = find(objects, 'ConfigMap', 'dashboard');
      const read = new Set(listExpressions(dashboard ? [dashboard] : []).flatMap(listMetrics));
      return METRIC_NAMES.filter((name) => !read.has(name)).map(
        (name) => `the dashboard does not show ${name}`,
      );
    },
  },
  {
    name: 'every alert says how urgent it is and what happens',
    check: (objects) =>
      ofKind(objects, 'PrometheusRule').flatMap((rule) =>
        (rule.spec.groups as { rules: Alert[] }[])
          .flatMap(({ rules }) => rules)
          .filter(
            ({ labels, annotations }) =>
              !/^(page|ticket)$/.test(labels?.severity ?? '') || !annotations?.summary,
          )
          .map(({ alert }) => `${nameOf(rule)}: ${alert} has no severity or summary`),
      ),
  },
];
