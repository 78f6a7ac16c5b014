import type { KubernetesObject } from './objects.ts';
import { listOverlays, readOverlay, readOverlayWithBackups } from './overlay.ts';
import { checkRules, findPromtool } from './promtool.ts';
import { ofKind } from './rules/rule.ts';
import { findFaults, RULES } from './rules.ts';

/**
 * `npm run k8s:check` builds every overlay and checks it offline: each object against the schema of its API version,
 * and all objects against the rules. If promtool is on the PATH, the command also checks the expressions of alerts and
 * dashboards, and runs the alerts' tests.
 */

/** The PrometheusRules that promtool has checked. Overlays share them, so each is checked only once. */
const seen = new Set<string>();

function checkRulesOnce(objects: readonly KubernetesObject[]): string[] {
  const key = JSON.stringify(ofKind(objects, 'PrometheusRule'));
  if (seen.has(key)) return [];
  seen.add(key);
  return checkRules(objects);
}

async function checkObjects(name: string, objects: readonly KubernetesObject[]): Promise<number> {
  const faults = [...(await findFaults(objects)), ...checkRulesOnce(objects)];
  for (const fault of faults) console.error(`${name}: ${fault}`);
  if (faults.length === 0)
    console.log(`${name}: ${objects.length} objects, valid; ${RULES.length} rules hold`);
  return faults.length;
}

let faults = 0;
for (const overlay of listOverlays()) faults += await checkObjects(overlay, readOverlay(overlay, 'own'));
faults += await checkObjects('production with backups', readOverlayWithBackups('production'));
if (findPromtool() === undefined)
  console.log('alerts: NOT TESTED, promtool is missing (Debian: apt-get install prometheus)');
process.exitCode = faults === 0 ? 0 : 1;
