import { readFileSync } from 'node:fs';
import type { KubernetesObject } from '../objects.ts';
import { type AlertingRule, listAlertingRules } from './monitoring.ts';
import { type Rule, unless } from './rule.ts';

/** Checks the alerts against the runbook, which the person on call reads. */

const RUNBOOK = 'docs/runbook.md';

/** The number of lines that fit on one screen. */
const SCREEN_LINES = 30;

/** Returns the second-level sections of a Markdown text, by anchor. */
export function readSections(text: string): Map<string, string> {
  const sections = text.split(/^## /m).slice(1);
  return new Map(
    sections.map((section) => [section.split('\n')[0]!.toLowerCase().replaceAll(' ', '-'), section.trim()]),
  );
}

/** Returns the urgency (`page` or `ticket`) of each alert that a section names, by the alert's name. */
const alertsOf = (section: string): Map<string, string> => {
  const names = /^\*Alerts: ([^*]*)\*$/m.exec(section)?.[1] ?? '';
  return new Map([...names.matchAll(/`(\w+)` \((\w+)\)/g)].map(([, alert, urgency]) => [alert!, urgency!]));
};

function findAlertFaults(
  { alert, labels, annotations }: AlertingRule,
  sections: ReadonlyMap<string, string>,
): string[] {
  const url = annotations?.runbook_url ?? '';
  const [place, anchor = ''] = url.split('#');
  const section = sections.get(anchor);
  if (!url.startsWith('https://') || !place!.endsWith(`/${RUNBOOK}`) || section === undefined)
    return [`does not link to a section of ${RUNBOOK}: ${url}`];
  const urgency = alertsOf(section).get(alert!);
  return unless(urgency === labels?.severity, `is a ${labels?.severity}, #${anchor} says ${urgency}`);
}

function findSectionFaults(anchor: string, section: string, known: ReadonlySet<string>): string[] {
  const isSymptom = section.includes('**Look here.**') || alertsOf(section).size > 0;
  return [
    ...[...alertsOf(section).keys()]
      .filter((alert) => !known.has(alert))
      .map((alert) => `names ${alert}, which is not an alert`),
    ...unless(section.split('\n').length <= SCREEN_LINES, 'does not fit on a screen'),
    ...unless(
      alertsOf(section).size === 0 || /\*\*It means\*\*.*\*\*Look here\.\*\*/s.test(section),
      'does not begin with what its alerts mean',
    ),
    ...unless(!isSymptom || section.includes('**Look here.**'), 'does not say where to look'),
    ...unless(!isSymptom || section.includes('**Resolved when**'), 'does not say how to see that it helped'),
  ].map((fault) => `#${anchor} ${fault}`);
}

/** Finds alerts that do not link to a section that names them, and sections that are incomplete. */
export function findUnexplainedAlerts(objects: readonly KubernetesObject[], runbook: string): string[] {
  const alerts = listAlertingRules(objects).filter(({ alert }) => alert !== undefined);
  if (alerts.length === 0) return [];
  const sections = readSections(runbook);
  const known = new Set(alerts.map(({ alert }) => alert!));
  const places = new Set(alerts.map(({ annotations }) => annotations?.runbook_url?.replace(/#.*/, '')));
  return [
    ...alerts.flatMap((rule) => findAlertFaults(rule, sections).map((fault) => `${rule.alert} ${fault}`)),
    ...[...sections].flatMap(([anchor, section]) => findSectionFaults(anchor, section, known)),
    ...unless(places.size <= 1, `alerts link to several places: ${[...places].join(', ')}`),
  ];
}

export const runbookRules: Rule[] = [
  {
    name: 'every alert links to its runbook section, which has the same severity',
    check: (objects) =>
      findUnexplainedAlerts(objects, readFileSync(new URL(`../../../${RUNBOOK}`, import.meta.url), 'utf8')),
  },
];
