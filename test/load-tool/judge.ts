import { type Latency, latencyOf } from '../bench/harness/stats.ts';
import { CLASSES, type Class, type Report } from './day.ts';

/** The service level objectives of docs/operation.md (`bookmarks_slo_events_total`), as clients measure them. */

const FAILURES_ALLOWED = 0.001;
const SLOW_ALLOWED = 0.01;
const SLOW_MS = 1_000;
const LATE_ALLOWED = 0.001;
const LATE_MS = 500;

interface Row extends Latency {
  name: Class;
  count: number;
  failures: number;
  reasons: string;
}

/** An objective, with the number of requests that missed it and the number that may miss it. */
interface Promised {
  name: string;
  bad: number;
  total: number;
  allowed: number;
}

export interface Verdict {
  rows: Row[];
  promises: Promised[];
  isKept: boolean;
}

/**
 * Returns how many of `total` requests may miss an objective. At least one may, because in a short run a single request
 * is already a large share.
 */
const allow = (total: number, share: number): number => Math.max(1, Math.floor(total * share));

export function judge(report: Report): Verdict {
  const rows = CLASSES.map((name): Row => {
    const { latencies, failures, reasons } = report[name];
    const texts = [...reasons].map(([reason, count]) => `${reason} ${count}`);
    const count = latencies.length + failures;
    return { name, count, failures, reasons: texts.join(', '), ...latencyOf(latencies.take()) };
  });
  const countAbove = (name: Class, ms: number) =>
    report[name].latencies.take().filter((latency) => latency > ms).length;
  const timed = rows.filter(({ name }) => name !== 'wake');
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const served = sum(timed.map(({ count, failures }) => count - failures));
  const promises = [
    ...timed.map(({ name, count, failures }) => ({
      ...{ name: `${name} does not fail`, bad: failures, total: count },
      allowed: allow(count, FAILURES_ALLOWED),
    })),
    {
      name: `a response within ${SLOW_MS} ms`,
      bad: sum(timed.map(({ name }) => countAbove(name, SLOW_MS))),
      total: served,
      allowed: allow(served, SLOW_ALLOWED),
    },
    {
      name: `an add reaches its user's poll within ${LATE_MS} ms`,
      bad: countAbove('wake', LATE_MS),
      total: report.wake.latencies.length,
      allowed: allow(report.wake.latencies.length, LATE_ALLOWED),
    },
  ];
  return { rows, promises, isKept: served > 0 && promises.every(({ bad, allowed }) => bad <= allowed) };
}

/** Formats the verdict as two tables: the classes of requests, and the objectives. */
export function formatVerdict({ rows, promises, isKept }: Verdict): string {
  const ms = (value: number) => value.toFixed(value < 10 ? 1 : 0).padStart(8);
  const number = (value: number) => String(value).padStart(8);
  return [
    'class     requests  failed  p50 ms  p99 ms p99.9 ms  max ms',
    ...rows.map(({ name, count, failures, reasons, p50, p99, p999, max }) =>
      `${name.padEnd(8)}${number(count)}${number(failures)}${ms(p50)}${ms(p99)}${ms(p999)}${ms(max)}  ${reasons}`.trimEnd(),
    ),
    '',
    ...promises.map(
      ({ name, bad, total, allowed }) =>
        `${bad <= allowed ? 'kept  ' : 'BROKEN'}  ${name}: ${bad} of ${total} did not, ${allowed} may`,
    ),
    isKept ? 'PASSED' : 'FAILED',
    '',
  ].join('\n');
}
