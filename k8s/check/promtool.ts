import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { type KubernetesObject, nameOf } from './objects.ts';
import { type AlertingRule, listAlertingRules, listDashboards } from './rules/monitoring.ts';
import { ofKind } from './rules/rule.ts';

/** If promtool is installed, runs it on the alerts and the dashboard. */

const TESTS_FILE = fileURLToPath(new URL('../monitoring/alerts.test.yaml', import.meta.url));

/** Matches metrics of a managed Postgres. */
const OF_PLATFORMS = /\b(aws|stackdriver)_/;

/** A test of alerts.test.yaml: some series, and the times at which each alert fires or does not fire for them. */
interface AlertTest {
  name: string;
  /** The time between two values of a series, and between two evaluations. */
  interval: string;
  alert_rule_test: { alertname: string; eval_time: string; exp_alerts: object[] }[];
}

/** Returns the command `promtool`, which tests rules of Prometheus, or undefined if it is not installed. */
export function findPromtool(): string | undefined {
  return spawnSync('promtool', ['--version']).status === 0 ? 'promtool' : undefined;
}

/**
 * Returns the syntax errors of rules and dashboard expressions or, if there are none, the failed tests of alerts.
 * Returns an empty list if promtool is not installed.
 */
export function checkRules(objects: readonly KubernetesObject[]): string[] {
  const rules = listAlertingRules(objects);
  if (rules.length === 0 || findPromtool() === undefined) return [];
  const groups = ofKind(objects, 'PrometheusRule').flatMap(({ spec }) => spec.groups);
  const name = ofKind(objects, 'PrometheusRule').map(nameOf).join(', ');
  const syntax = inFolder((folder) => {
    writeFileSync(join(folder, 'alerts.yaml'), stringify({ groups }));
    writeFileSync(join(folder, 'dashboard.yaml'), stringify({ groups: [makeDashboardGroup(objects)] }));
    return runPromtool(folder, ['check', 'rules', '--lint=none', 'alerts.yaml', 'dashboard.yaml']);
  });
  const tested = rules
    .flatMap(({ alert }) => (alert ? { alert, rules } : []))
    // The tests of alerts assume that Postgres's disk is in the cluster, so alerts for a managed Postgres are left out.
    .filter(({ alert }) => !listNeeded(rules, alert).some(({ expr }) => OF_PLATFORMS.test(expr)));
  const faults = syntax.length > 0 ? syntax : testRules(tested).filter((fault) => fault !== undefined);
  return faults.map((fault) => `${name}: ${fault}`);
}

/** An alert, and the rules to test it with. */
export interface TestedAlert {
  alert: string;
  rules: readonly AlertingRule[];
}

/** Runs the tests of each alert. Returns for each alert a message if a test failed, or undefined if all passed. */
export function testRules(tested: readonly TestedAlert[]): (string | undefined)[] {
  return inFolder((folder) => {
    const files = writeTests(folder, tested);
    const passed = listPassed(folder, files.flat());
    return files.map((own) =>
      own.every((file) => passed.has(file)) ? undefined : runPromtool(folder, ['test', 'rules', ...own])[0],
    );
  });
}

/**
 * Returns for each alert whether a test fails. Does not return the reasons, because finding a reason needs another run
 * of the test.
 */
export function failsTests(tested: readonly TestedAlert[]): boolean[] {
  return inFolder((folder) => {
    const files = writeTests(folder, tested);
    const passed = listPassed(folder, files.flat());
    return files.map((own) => !own.every((file) => passed.has(file)));
  });
}

/**
 * Returns the test files that pass. One process checks all files, because starting a process takes longer than
 * checking a file.
 */
function listPassed(folder: string, files: readonly string[]): Set<string> {
  const { stdout } = spawnSync('promtool', ['test', 'rules', ...files], { cwd: folder, encoding: 'utf8' });
  return new Set([...stdout.matchAll(/^Unit Testing: +(\S+)\n +SUCCESS$/gm)].map(([, file]) => file!));
}

/**
 * Writes the tests of each alert to files. Returns the test files of each alert. For speed, each test loads only the
 * rules that its alert needs, and evaluates them once for each value of the series.
 */
function writeTests(folder: string, tested: readonly TestedAlert[]): string[][] {
  const { tests }: { tests: AlertTest[] } = parse(readFileSync(TESTS_FILE, 'utf8'));
  return tested.map(({ alert, rules }, alertNumber) => {
    const needed = listNeeded(rules, alert).map(withoutRunbook);
    writeFileSync(
      join(folder, `${alertNumber}.yaml`),
      stringify({ groups: [{ name: alert, rules: needed }] }),
    );
    return tests.flatMap(({ alert_rule_test, ...test }, testNumber) => {
      const own = alert_rule_test.filter(({ alertname }) => alertname === alert);
      if (own.length === 0) return [];
      const name = `${alertNumber}.${testNumber}.test.yaml`;
      writeFileSync(
        join(folder, name),
        stringify({
          rule_files: [`${alertNumber}.yaml`],
          evaluation_interval: test.interval,
          tests: [{ ...test, alert_rule_test: own }],
        }),
      );
      return name;
    });
  });
}

/** Returns the recording rules that an alert needs, directly or indirectly, and then the alert's own rule. */
export function listNeeded(rules: readonly AlertingRule[], alert: string): AlertingRule[] {
  const needed = new Set(rules.filter((rule) => rule.alert === alert));
  // A loop over a Set also visits the elements that are added to the Set during the loop.
  for (const { expr } of needed)
    for (const rule of rules) if (rule.record && expr.includes(rule.record)) needed.add(rule);
  return [...needed].reverse();
}

/** Removes an alert's link to the runbook, because its url differs by operator. */
function withoutRunbook({ annotations, ...rule }: AlertingRule): object {
  return annotations ? { ...rule, annotations: { summary: annotations.summary } } : rule;
}

function inFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'bookmarks-alerts-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the dashboard's expressions as recording rules, so that promtool checks their syntax. */
function makeDashboardGroup(objects: readonly KubernetesObject[]) {
  const expressions = listDashboards(objects).flatMap(({ expressions }) => expressions);
  const rules = expressions.map((expr, index) => ({
    record: `dashboard:${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$namespace', '.+'),
  }));
  return { name: 'dashboard', rules };
}

function runPromtool(folder: string, args: string[]): string[] {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
  return status === 0 ? [] : [`promtool ${args.slice(0, 2).join(' ')}: ${`${stdout}${stderr}`.trim()}`];
}
