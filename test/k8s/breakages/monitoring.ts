import { type AnyObject, type Breakage, edit } from '../overlay-copy.ts';

/**
 * Returns the annotations of the first alert. The alerts begin in the second group, because the first group contains
 * recorded series.
 */
const annotationsOf = (spec: AnyObject) => spec.groups[1].rules[0].annotations;

/** Mistakes in alerts, the dashboard and scrapes. */
export const MONITORING: Breakage[] = [
  ['balanced brackets', 'PrometheusRule/bookmarks', ({ spec }) => (spec.groups[1].rules[0].expr += ')')],
  [
    'balanced brackets',
    'ConfigMap/dashboard',
    edit('bookmarks.json', 'sum by (pod) (bookmarks_waiters', 'sum by (pod) ((bookmarks_waiters'),
  ],
  [
    'balanced brackets',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].expr = 'up{job="api} == 0'),
  ],
  [
    'metrics that exist',
    'ConfigMap/dashboard',
    edit('bookmarks.json', 'bookmarks_waiters_limit', 'bookmarks_waiters_max'),
  ],
  [
    'metrics that exist',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].expr = 'bookmarks_up == 0'),
  ],
  ['metrics that exist', 'PrometheusRule/bookmarks', ({ spec }) => spec.groups[0].rules.shift()],
  [
    'metrics that exist',
    'HorizontalPodAutoscaler/api',
    ({ spec }) =>
      spec.metrics.push({ type: 'Pods', pods: { ...spec.metrics[1].pods, metric: { name: 'longpolls' } } }),
  ],
  ['on the dashboard', 'ConfigMap/dashboard', edit('bookmarks.json', 'bookmarks_wakes_received_total', 'up')],
  ['panels have unique ids', 'ConfigMap/dashboard', edit('bookmarks.json', '"id": 22,', '"id": 21,')],
  ['panels have unique ids', 'ConfigMap/dashboard', edit('bookmarks.json', '"x": 6,', '"x": 5,')],
  [
    'panels have unique ids',
    'ConfigMap/dashboard',
    edit('bookmarks.json', '"unit": "reqps"', '"unit": "percentunit"'),
  ],
  ['panels have unique ids', 'ConfigMap/dashboard', edit('bookmarks.json', '"y": 24', '"y": 25')],
  [
    'every alert has a severity',
    'PrometheusRule/bookmarks',
    ({ spec }) => delete spec.groups[1].rules[0].labels,
  ],
  [
    'every alert has a severity',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].annotations.summary = 'Down.'),
  ],
  [
    'every alert has a severity',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].expr = 'sum(up) == 0'),
  ],
  [
    'every alert has a severity',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].expr = 'sum by (namespace) (up{namespace="bookmarks"}) == 0'),
  ],
  [
    'serves each pod metric',
    'HorizontalPodAutoscaler/api',
    ({ spec }) => (spec.metrics[1].pods.metric.name = 'bookmarks_waiters_limit'),
  ],
  [
    'links to its runbook section',
    'PrometheusRule/bookmarks',
    ({ spec }) => delete annotationsOf(spec).runbook_url,
  ],
  [
    'links to its runbook section',
    'PrometheusRule/bookmarks',
    ({ spec }) => (annotationsOf(spec).runbook_url += '-and-more'),
  ],
  [
    'links to its runbook section',
    'PrometheusRule/bookmarks',
    ({ spec }) =>
      (annotationsOf(spec).runbook_url =
        'https://elsewhere.example.org/docs/runbook.md#nobody-reaches-the-service'),
  ],
  [
    'links to its runbook section',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].labels.severity = 'ticket'),
  ],
  [
    'links to its runbook section',
    'PrometheusRule/bookmarks',
    ({ spec }) => (spec.groups[1].rules[0].alert += 'Too'),
  ],
  ['scrape ends', 'ServiceMonitor/bookmarks', ({ spec }) => (spec.endpoints[0].scrapeTimeout = '20s')],
];
