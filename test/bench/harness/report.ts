import { cpuRatioOf, type SideResult } from './rounds.ts';
import type { Spread } from './stats.ts';

/** One line of the table. */
export interface Line {
  bench: string;
  what: string;
  /** The unit: `/s`, `ms`, `MB/s` and so on. */
  unit: string;
  service: Spread;
  reference?: Spread;
  referenceName?: string;
  /** A ratio that compares both sides, computed for each round. Higher is better, except for memory and latencies. */
  ratio?: Spread;
  mark?: { text: string; reached: boolean };
  /** The service's CPU microseconds per operation, by group of processes. `referenceCpu` has those of the reference. */
  cpu?: Record<string, Spread>;
  referenceCpu?: Record<string, Spread>;
  latency?: { p50: Spread; p99: Spread; p999: Spread; max: Spread };
  note?: string;
}

/** Rounds to significant digits, because rates and milliseconds share a table. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en');
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

const formatSpread = ({ median, min, max }: Spread): string =>
  min === max ? formatNumber(median) : `${formatNumber(median)} (${formatNumber(min)}–${formatNumber(max)})`;

const formatCpu = (cpu: Record<string, Spread> | undefined): string =>
  Object.entries(cpu ?? {})
    .map(([name, micros]) => `${name} ${formatNumber(micros.median)}`)
    .join(', ');

/** Formats the ratio of the reference's CPU time to the service's. Other load on the machine hardly affects it. */
function formatCpuRatio({ cpu, referenceCpu }: Line): string {
  if (cpu === undefined || referenceCpu === undefined) return '';
  const total = (times: Record<string, Spread>) =>
    Object.values(times).reduce((sum, { median }) => sum + median, 0);
  return formatNumber(total(referenceCpu) / total(cpu));
}

const COLUMNS = [
  'bench',
  'case',
  'service',
  'reference',
  'ratio',
  'mark',
  '',
  'CPU ratio',
  'CPU µs',
  'reference’s',
  'p50 / p99 ms',
  'note',
];

function cells(line: Line, withMarks: boolean): string[] {
  const { latency, mark } = line;
  return [
    line.bench,
    line.what,
    `${formatSpread(line.service)} ${line.unit}`,
    line.reference === undefined ? '' : `${formatSpread(line.reference)} ${line.unit}`,
    line.ratio === undefined ? '' : formatSpread(line.ratio),
    mark?.text ?? '',
    mark === undefined || !withMarks ? '' : mark.reached ? 'reached' : 'NOT reached',
    formatCpuRatio(line),
    formatCpu(line.cpu),
    formatCpu(line.referenceCpu),
    latency === undefined ? '' : `${formatNumber(latency.p50.median)} / ${formatSpread(latency.p99)}`,
    line.note ?? '',
  ];
}

/** Formats the table as Markdown. `withMarks` is false if the run was too short to judge the results. */
export function formatTable(lines: readonly Line[], withMarks: boolean): string {
  const rows = lines.map((line) => cells(line, withMarks));
  const header = [COLUMNS, COLUMNS.map(() => '---')];
  return [...header, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** Makes the usual line: the service's rate compared with the reference's, with a mark for the ratio. */
export function lineOf(
  names: { bench: string; what: string; unit?: string; note?: string },
  service: SideResult,
  reference: SideResult,
  ratio: Spread,
  atLeast?: number,
): Line {
  return {
    bench: names.bench,
    what: names.what,
    unit: names.unit ?? '/s',
    service: service.rate,
    reference: reference.rate,
    referenceName: reference.name,
    ratio,
    ...(atLeast !== undefined && { mark: { text: `≥ ${atLeast}`, reached: ratio.median >= atLeast } }),
    cpu: service.cpuMicros,
    referenceCpu: reference.cpuMicros,
    ...(service.latency && { latency: service.latency }),
    ...(names.note !== undefined && { note: names.note }),
  };
}

/** Makes a line like `lineOf`, but with the ratio of the CPU times. Other load on the machine hardly affects it. */
export function cpuLineOf(
  names: { bench: string; what: string; note?: string },
  service: SideResult,
  reference: SideResult,
  atLeast: number,
): Line {
  const ratio = cpuRatioOf(service, reference);
  const mark = { text: `≥ ${atLeast} by CPU`, reached: ratio.median >= atLeast };
  return { ...lineOf(names, service, reference, ratio), mark };
}
