import { readFileSync } from 'node:fs';
import type { KubernetesObject } from '../objects.ts';
import { type AlertingRule, listAlertingRules } from './monitoring.ts';
import { type Rule, unless } from './rule.ts';

/** The alerts against the document that whoever is woken reads. */

const RUNBOOK = 'docs/operation.md';

/** Of each heading of a Markdown text the first word in italics below it, by the heading's anchor. */
export function readSections(text: string): Map<string, string | undefined> {
  const sections = [...text.matchAll(/^#+ (.+)\n+(?:\*(\w+)\*)?/gm)];
  return new Map(sections.map(([, heading, word]) => [heading!.toLowerCase().replaceAll(' ', '-'), word]));
}

function findRunbookFaults(
  { alert, labels, annotations }: AlertingRule,
  sections: ReadonlyMap<string, string | undefined>,
): string[] {
  const anchor = alert!.toLowerCase();
  const url = annotations?.runbook_url ?? '';
  const urgency = sections.get(anchor)?.toLowerCase();
  return [
    ...unless(url.startsWith('https://'), 'has no runbook_url'),
    ...unless(url.endsWith(`/${RUNBOOK}#${anchor}`), `does not lead to its own section: ${url}`),
    ...unless(sections.has(anchor), `has no section in ${RUNBOOK}`),
    ...unless(urgency === labels?.severity, `is a ${labels?.severity}, ${RUNBOOK} says ${urgency}`),
  ];
}

/** Alerts whose section of the runbook nobody would find, and sections that say another urgency. */
export function findAlertsAstray(objects: readonly KubernetesObject[], runbook: string): string[] {
  const alerts = listAlertingRules(objects).filter(({ alert }) => alert !== undefined);
  const sections = readSections(runbook);
  const places = new Set(alerts.map(({ annotations }) => annotations?.runbook_url?.replace(/#.*/, '')));
  return [
    ...alerts.flatMap((rule) => findRunbookFaults(rule, sections).map((fault) => `${rule.alert} ${fault}`)),
    ...unless(places.size <= 1, `alerts lead to several places: ${[...places].join(', ')}`),
  ];
}

export const runbookRules: Rule[] = [
  {
    name: 'every alert leads to its section of the runbook, which says the same urgency',
    check: (objects) =>
      findAlertsAstray(objects, readFileSync(new URL(`../../../${RUNBOOK}`, import.meta.url), 'utf8')),
  },
];
