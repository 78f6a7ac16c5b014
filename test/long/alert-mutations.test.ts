import { expect, test } from 'vitest';
import { failsTests, listNeeded, testRules } from '../../k8s/check/promtool.ts';
import { type AlertingRule, listAlertingRules } from '../../k8s/check/rules/monitoring.ts';
import { copyOverlay } from '../k8s/overlay-copy.ts';
import { provide } from '../support/programs.ts';

/** Checks that the tests of the alerts fail if a `for`, a threshold or a selector is wrong. */

/** Multiplies the number after each comparison operator. A 0 does not change. */
const scale = (expr: string, factor: number): string =>
  expr.replace(/([<>]=?|[<>!=]=) *([\d.]+)/g, (_, sign, number) => `${sign} ${Number(number) * factor}`);

/** For each label matcher of the expression, returns the expression without this matcher. */
const dropMatchers = (expr: string): [matcher: string, expr: string][] =>
  [...new Set(expr.match(/\w+(?:=~|!~|!=|=)"[^"]*"/g))].map((matcher) => [
    matcher,
    expr.replaceAll(`${matcher}, `, '').replaceAll(`, ${matcher}`, '').replaceAll(matcher, ''),
  ]);

/** Yields copies of a rule with one mistake each. */
function* mutate(rule: AlertingRule): Generator<[what: string, mutant: AlertingRule]> {
  if (rule.for !== undefined) {
    yield ['without for', { ...rule, for: '0s' }];
    yield [
      'twice for',
      {
        ...rule,
        for: `${rule.for}${rule.for}`.replace(/^(\d+)(\w)\d+\w$/, (_, n, unit) => `${2 * n}${unit}`),
      },
    ];
  }
  for (const factor of rule.alert ? [0.5, 2] : []) {
    const expr = scale(rule.expr, factor);
    if (expr !== rule.expr) yield [`thresholds × ${factor}`, { ...rule, expr }];
  }
  for (const [matcher, expr] of dropMatchers(rule.expr)) yield [`without ${matcher}`, { ...rule, expr }];
}

test('a wrong for, threshold or selector of any alert fails its tests', async () => {
  await provide('promtool');
  const rules = listAlertingRules(copyOverlay());
  const alerts = rules.flatMap(({ alert }) => alert ?? []);
  expect(testRules(alerts.map((alert) => ({ alert, rules }))).filter((fault) => fault !== undefined)).toEqual(
    [],
  );
  const mutants = rules.flatMap((rule) =>
    [...mutate(rule)].map(([what, mutant]) => ({
      name: `${rule.alert ?? rule.record}: ${what}`,
      rules: rules.map((other) => (other === rule ? mutant : other)),
      // A recorded series has no tests of its own. If its rule is wrong, a test of an alert that reads the series must
      // fail.
      alerts: alerts.filter((alert) => listNeeded(rules, alert).includes(rule)),
    })),
  );
  expect(mutants.length).toBeGreaterThan(120);
  const tested = mutants.flatMap(({ name, alerts, rules }) =>
    alerts.map((alert) => ({ name, alert, rules })),
  );
  const fails = failsTests(tested);
  expect(failsTests(alerts.map((alert) => ({ alert, rules })))).not.toContain(true);
  const noticed = new Set(tested.filter((_, n) => fails[n]).map(({ name }) => name));
  expect(mutants.map(({ name }) => name).filter((name) => !noticed.has(name))).toEqual([]);
});
