import { POINTS, type Result } from './checks/findings.ts';
import type { Fault, Life } from './journal.ts';

/** How many findings of a point are printed. Further findings are only counted. */
const SHOWN = 12;

/** Formats the results as a Markdown table: checks, counts and faults. */
export function formatTable(results: readonly Result[]): string {
  const lines = results.map(({ point, counts, findings, notShown }) => {
    const numbers = Object.entries(counts).map(([name, count]) => `${count.toLocaleString('en')} ${name}`);
    const sound = notShown === undefined ? 'holds' : `not shown: ${notShown}`;
    const verdict = findings.length === 0 ? sound : `**${findings.length} violations**`;
    return `| ${POINTS[point]} | ${numbers.join(', ')} | ${verdict} |`;
  });
  return ['| what must hold | checked | result |', '|---|---|---|', ...lines].join('\n');
}

/** Returns the number of faults of each kind. */
export function formatFaults(faults: readonly Fault[]): string {
  const counts = new Map<string, number>();
  for (const { kind, target } of faults) {
    const name = `${kind} (${target.replace(/-\d/g, '')})`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .sort()
    .map(([name, count]) => `${name}: ${count}`)
    .join(' · ');
}

/** Returns the first findings of each point, one per line, and the points that were not shown. */
export function formatFindings(results: readonly Result[]): string {
  return results
    .filter(({ findings, notShown }) => findings.length > 0 || notShown !== undefined)
    .map(({ point, findings, notShown }) => {
      const more = findings.length > SHOWN ? [`  … ${findings.length - SHOWN} more`] : [];
      const missing = notShown === undefined ? [] : [`  not shown: ${notShown}`];
      const shown = findings.slice(0, SHOWN).map((each) => `  ${each}`);
      return [`${POINTS[point]}:`, ...missing, ...shown, ...more].join('\n');
    })
    .join('\n');
}

/** Returns the 20 most frequent warnings and errors of the processes, each with its count. */
export function formatWarnings(lives: readonly Life[]): string {
  const counts = new Map<string, number>();
  for (const { text, level } of lives.flatMap(({ problems }) => problems)) {
    // Text on standard error has level 60, and is not always JSON.
    const { msg, err } = level === 60 && !text.startsWith('{"') ? { msg: text, err: {} } : JSON.parse(text);
    const name = [msg, err?.message, err?.cause?.code].filter(Boolean).join(': ');
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 20)
    .map(([name, count]) => `  ${count} ${name}`)
    .join('\n');
}
