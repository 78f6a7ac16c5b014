import type { KubernetesObject } from './objects.ts';
import { nameOf } from './objects.ts';
import { backupRules } from './rules/backups.ts';
import { citusRules } from './rules/citus.ts';
import { environmentRules } from './rules/environment.ts';
import { monitoringRules } from './rules/monitoring.ts';
import { podRules } from './rules/pods.ts';
import { poolerRules } from './rules/pooler.ts';
import { referenceRules } from './rules/references.ts';
import { rollOutRules } from './rules/roll-out.ts';
import type { Rule } from './rules/rule.ts';
import { trafficRules } from './rules/traffic.ts';
import { validateObject } from './schemas.ts';

/** All rules for an overlay. */
export const RULES: readonly Rule[] = [
  ...environmentRules,
  ...podRules,
  ...rollOutRules,
  ...referenceRules,
  ...trafficRules,
  ...poolerRules,
  ...monitoringRules,
  ...backupRules,
  ...citusRules,
];

/** Returns the faults of an overlay's objects. If any object violates its schema, the rules are not checked. */
export async function findFaults(objects: readonly KubernetesObject[]): Promise<string[]> {
  const checked = await Promise.all(
    objects.map(async (object) =>
      (await validateObject(object)).map((fault) => `${nameOf(object)}: ${fault}`),
    ),
  );
  const faults = checked.flat();
  if (faults.length > 0) return faults;
  return RULES.flatMap((rule) => applyRule(rule, objects).map((fault) => `${rule.name}: ${fault}`));
}

/**
 * Returns the faults that a rule finds. An error that the rule throws also counts as a fault, because an object that
 * violates one rule may make the code of another rule throw.
 */
function applyRule(rule: Rule, objects: readonly KubernetesObject[]): string[] {
  try {
    return rule.check(objects);
  } catch (error) {
    return [`cannot be checked: ${(error as Error).message}`];
  }
}
