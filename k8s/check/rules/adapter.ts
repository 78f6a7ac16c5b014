import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type KubernetesObject, nameOf } from '../objects.ts';
import { ofKind, type Rule, unless } from './rule.ts';

/**
 * Checks the configuration of prometheus-adapter, which is not part of an overlay. The adapter must serve the metrics
 * that autoscalers request.
 */

const FILE = new URL('../../monitoring/prometheus-adapter.yaml', import.meta.url);

/** A rule of prometheus-adapter: the series that it reads, the name under which it serves them, and the query. */
interface AdapterRule {
  seriesQuery: string;
  name?: { as?: string };
  resources?: { overrides?: Record<string, { resource: string }> };
  metricsQuery: string;
}

const seriesOf = ({ seriesQuery }: AdapterRule): string => seriesQuery.replace(/\{.*/s, '');

/** Returns the name under which autoscalers request the rule's metric. */
const servedNameOf = (rule: AdapterRule): string => rule.name?.as ?? seriesOf(rule);

function findRuleFaults(rule: AdapterRule): string[] {
  const { seriesQuery, resources, metricsQuery } = rule;
  const unknown = ['namespace', 'pod'].filter(
    (label) => !seriesQuery.includes(`${label}!=""`) || resources?.overrides?.[label]?.resource !== label,
  );
  const absent = ['<<.Series>>', '<<.LabelMatchers>>', '<<.GroupBy>>'].filter(
    (part) => !metricsQuery.includes(part),
  );
  return [
    ...unknown.map((label) => `does not select by ${label}`),
    ...absent.map((part) => `its query has no ${part}`),
  ];
}

/** Finds metrics that autoscalers request, but that the adapter does not serve or does not separate by pod. */
export function findAdapterFaults(objects: readonly KubernetesObject[], configuration: string): string[] {
  const rules: AdapterRule[] = parse(configuration).rules?.custom ?? [];
  return ofKind(objects, 'HorizontalPodAutoscaler').flatMap((autoscaler) => {
    const requested: string[] = autoscaler.spec.metrics.flatMap(
      ({ pods }: { pods?: { metric: { name: string } } }) => pods?.metric.name ?? [],
    );
    return requested.flatMap((name) => {
      const served = rules.filter((rule) => servedNameOf(rule) === name);
      const faults = served.flatMap((rule) => [
        ...unless(seriesOf(rule) === name, `is made of ${seriesOf(rule)}`),
        ...findRuleFaults(rule),
      ]);
      return [
        ...unless(served.length === 1, `${served.length} rules of the adapter serve it`),
        ...faults,
      ].map((fault) => `${nameOf(autoscaler)}: ${name}: ${fault}`);
    });
  });
}

export const adapterRules: Rule[] = [
  {
    name: 'the adapter serves each pod metric that an autoscaler follows',
    check: (objects) => findAdapterFaults(objects, readFileSync(FILE, 'utf8')),
  },
];
