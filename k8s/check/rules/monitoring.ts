import { readFileSync } from 'node:fs';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { parse } from 'yaml';
import { METRIC_NAMES } from '../../../src/observability/metrics.ts';
import { type KubernetesObject, nameOf, walk } from '../objects.ts';
import { ofKind, type Rule, unless } from './rule.ts';

/**
 * Metrics that alerts and the dashboard read from other sources: from Prometheus, the kubelet, kube-state-metrics and
 * exporters.
 */
const OF_OTHERS = [
  'up',
  'aws_rds_free_storage_space_average',
  'stackdriver_cloudsql_database_cloudsql_googleapis_com_database_disk_utilization',
  'kube_deployment_spec_replicas',
  'kube_deployment_status_replicas_available',
  'kube_horizontalpodautoscaler_spec_max_replicas',
  'kube_horizontalpodautoscaler_status_condition',
  'kube_horizontalpodautoscaler_status_desired_replicas',
  'kube_cronjob_created',
  'kube_cronjob_status_last_successful_time',
  'kube_job_failed',
  'kube_pod_container_status_restarts_total',
  'kube_pod_container_status_last_terminated_reason',
  'kubelet_volume_stats_available_bytes',
  'kubelet_volume_stats_capacity_bytes',
  'pg_replication_is_replica',
  'pg_replication_lag_seconds',
  'pg_stat_activity_max_tx_duration',
  'pg_up',
  'probe_ssl_earliest_cert_expiry',
  'probe_success',
  'redis_memory_max_bytes',
  'redis_memory_used_bytes',
  'redis_up',
  'pgbouncer_up',
  'pgbouncer_pools_client_maxwait_seconds',
  'pgbouncer_pools_client_waiting_connections',
  'pgbouncer_pools_server_active_connections',
];

/** Words of PromQL that look like metrics, because no parenthesis needs to follow them. */
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

/** Returns the metrics that exist: those of the service, of Node and the process, and of other sources. */
function listExistingMetrics(): Set<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const ofNode = registry.getMetricsAsArray().map(({ name }) => name);
  registry.clear();
  return new Set([...METRIC_NAMES, ...ofNode, ...OF_OTHERS]);
}

/** Returns the metrics that a PromQL expression reads. For the series of a histogram, returns the histogram's name. */
export function listMetrics(expression: string): string[] {
  // Leaves out strings, label matchers, ranges, offsets, and the labels of groupings and joins.
  const bare = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]|\boffset \d+[a-z]+/g, '')
    .replaceAll(/\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)/g, '');
  // Finds the words that no parenthesis follows. A word before a parenthesis is a function.
  const words = bare.match(/[a-zA-Z_:][\w:]*(?! *\()\b(?! *\()/g) ?? [];
  return words
    .filter((word) => !KEYWORDS.includes(word) && !/^\d/.test(word))
    .map((word) => word.replace(/_(bucket|sum|count)$/, ''));
}

interface Dashboard {
  name: string;
  expressions: string[];
}

/** Returns the dashboards and the expressions of their panels. Throws for invalid JSON. */
export const listDashboards = (objects: readonly KubernetesObject[]): Dashboard[] =>
  ofKind(objects, 'ConfigMap')
    .filter(({ metadata }) => metadata.labels?.grafana_dashboard !== undefined)
    .map((map) => ({
      name: nameOf(map),
      expressions: Object.values(map.data as Record<string, string>).flatMap((text) =>
        [...walk(JSON.parse(text))].map(({ expr }) => expr).filter((expr) => typeof expr === 'string'),
      ),
    }));

/** A rule of Prometheus: an alert or a recorded series. */
export interface AlertingRule {
  alert?: string;
  record?: string;
  expr: string;
  for?: string;
  labels?: { severity?: string };
  annotations?: { summary?: string; runbook_url?: string };
}

/** Returns all rules in the PrometheusRules. */
export const listAlertingRules = (objects: readonly KubernetesObject[]): AlertingRule[] =>
  ofKind(objects, 'PrometheusRule').flatMap(({ spec }) =>
    (spec.groups as { rules: AlertingRule[] }[]).flatMap(({ rules }) => rules),
  );

/** Returns the names of all alerts. */
export const listAlerts = (objects: readonly KubernetesObject[]): string[] =>
  listAlertingRules(objects).flatMap(({ alert }) => alert ?? []);

/** Returns the names of the metrics of pods that an autoscaler follows. */
const listPodMetrics = ({ spec }: KubernetesObject): string[] =>
  spec.metrics.flatMap(({ pods }: { pods?: { metric: { name: string } } }) => pods?.metric.name ?? []);

/** Returns all expressions of dashboards and alerts, and all metrics of autoscalers. `where` names the source. */
function listExpressions(objects: readonly KubernetesObject[]): { where: string; expr: string }[] {
  const autoscaled = ofKind(objects, 'HorizontalPodAutoscaler').flatMap((autoscaler) =>
    listPodMetrics(autoscaler).map((expr) => ({ where: nameOf(autoscaler), expr })),
  );
  return [
    ...listAlertingRules(objects).map(({ alert, record, expr }) => ({
      where: (alert ?? record)!,
      expr: String(expr),
    })),
    ...listDashboards(objects).flatMap(({ name, expressions }) =>
      expressions.map((expr) => ({ where: name, expr })),
    ),
    ...autoscaled,
  ];
}

const findUnknown = (objects: readonly KubernetesObject[]): string[] => {
  const recorded = listAlertingRules(objects).flatMap(({ record }) => record ?? []);
  const known = listExistingMetrics().union(new Set(recorded));
  return listExpressions(objects).flatMap(({ where, expr }) =>
    listMetrics(expr)
      .filter((name) => !known.has(name))
      .map((name) => `${where}: there is no metric ${name}`),
  );
};

/**
 * Returns whether an expression groups or joins by namespace, or begins with a recorded series. Recorded series are
 * already grouped by namespace.
 */
const groupsByNamespace = ({ expr }: AlertingRule): boolean =>
  /\b(by|on) *\([^)]*\bnamespace\b/.test(expr) || /^bookmarks:\w+/.test(expr.trim());

const findAlertFaults = (rule: AlertingRule): string[] => [
  ...unless(/^(page|ticket)$/.test(rule.labels?.severity ?? ''), 'has neither severity page nor ticket'),
  ...unless(!!rule.annotations?.summary, 'has no summary'),
  ...unless(rule.annotations?.summary?.includes('$labels.namespace') === true, 'does not name the namespace'),
  ...unless(groupsByNamespace(rule), 'combines several environments'),
  ...unless(!/namespace *=/.test(rule.expr), 'selects a single namespace'),
];

/** The values of prometheus-adapter, which is not part of an overlay. */
const ADAPTER_FILE = new URL('../../monitoring/prometheus-adapter.yaml', import.meta.url);

/** Finds metrics that autoscalers request, but that the adapter does not serve for each pod. */
export function findAdapterFaults(objects: readonly KubernetesObject[], configuration: string): string[] {
  const rules: { seriesQuery: string; metricsQuery: string }[] = parse(configuration).rules?.custom ?? [];
  return ofKind(objects, 'HorizontalPodAutoscaler').flatMap((autoscaler) =>
    listPodMetrics(autoscaler)
      .filter(
        (name) =>
          !rules.some(
            ({ seriesQuery, metricsQuery }) =>
              seriesQuery === `${name}{namespace!="",pod!=""}` &&
              /\(<<\.GroupBy>>\).*\{<<\.LabelMatchers>>\}/.test(metricsQuery),
          ),
      )
      .map((name) => `${nameOf(autoscaler)}: the adapter does not serve ${name} of each pod`),
  );
}

export const monitoringRules: Rule[] = [
  { name: 'dashboards, alerts and autoscalers read metrics that exist', check: findUnknown },
  {
    name: 'an overlay with alerts has every metric of the service on the dashboard',
    check: (objects) => {
      if (ofKind(objects, 'PrometheusRule').length === 0) return [];
      const read = new Set(
        listDashboards(objects).flatMap(({ expressions }) => expressions.flatMap(listMetrics)),
      );
      return METRIC_NAMES.filter((name) => !read.has(name)).map(
        (name) => `the dashboard does not show ${name}`,
      );
    },
  },
  {
    name: 'every alert has a severity, a summary with the namespace, and separates environments',
    check: (objects) =>
      listAlertingRules(objects)
        .filter(({ alert }) => alert !== undefined)
        .flatMap((rule) => findAlertFaults(rule).map((fault) => `${rule.alert} ${fault}`)),
  },
  {
    name: 'the adapter serves each pod metric that an autoscaler follows',
    check: (objects) => findAdapterFaults(objects, readFileSync(ADAPTER_FILE, 'utf8')),
  },
];
