import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { type KubernetesObject, nameOf } from './objects.ts';
import { listDashboards } from './rules/monitoring.ts';
import { ofKind } from './rules/rule.ts';

/** What promtool says of the alerts and the dashboard; nothing where it is not installed. */

const TESTS_FILE = fileURLToPath(new URL('../monitoring/alerts.test.yaml', import.meta.url));

/** Prometheus's own tool, or nothing. */
export function findPromtool(): string | undefined {
  return spawnSync('promtool', ['--version']).status === 0 ? 'promtool' : undefined;
}

/** Faults in the syntax of rules and of the dashboard's expressions, and tests of the alerts that fail. */
export function checkRules(objects: readonly KubernetesObject[]): string[] {
  const rules = ofKind(objects, 'PrometheusRule');
  if (rules.length === 0 || findPromtool() === undefined) return [];
  const folder = mkdtempSync(join(tmpdir(), 'bookmarks-alerts-'));
  try {
    const groups = rules.flatMap(({ spec }) => structuredClone(spec.groups));
    // The place of the runbook is each operator's own: a rule checks it, and the alerts' tests leave it out.
    for (const { rules } of groups) for (const { annotations } of rules) delete annotations?.runbook_url;
    writeFileSync(join(folder, 'alerts.yaml'), stringify({ groups }));
    writeFileSync(join(folder, 'dashboard.yaml'), stringify({ groups: [makeDashboardGroup(objects)] }));
    writeFileSync(join(folder, 'alerts.test.yaml'), readFileSync(TESTS_FILE, 'utf8'));
    const syntax = runPromtool(folder, ['check', 'rules', '--lint=none', 'alerts.yaml', 'dashboard.yaml']);
    const faults = syntax.length > 0 ? syntax : runPromtool(folder, ['test', 'rules', 'alerts.test.yaml']);
    return faults.map((fault) => `${rules.map(nameOf).join(', ')}: ${fault}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The dashboard's expressions as rules, so that their syntax is checked too. */
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
