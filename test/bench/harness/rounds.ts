import { type ProcessGroups, type ProcessTimes, readProcessTimes, timesBetween } from './process-time.ts';
import { type Latency, type Spread, spreadOf } from './stats.ts';

/** The result of one run of one side. */
export interface Sample {
  /** Operations or megabytes per second, depending on the bench. */
  rate: number;
  operations: number;
  /** The number of unexpected responses. */
  failures?: number;
}

/** One of the compared programs. */
export interface Side {
  name: string;
  run(seconds: number): Promise<Sample>;
  /** Measures the latency at a fixed rate. */
  latency?(perSecond: number, seconds: number): Promise<Latency>;
  /** The processes whose CPU time is counted. */
  processes: ProcessGroups;
}

/** The results of one side in all rounds. */
export interface SideResult {
  name: string;
  rate: Spread;
  /** For each group of processes, its CPU microseconds per operation. */
  cpuMicros: Record<string, Spread>;
  /** For each round, the CPU microseconds per operation of all processes together. */
  cpuRounds: number[];
  /** The latencies at half of the side's median rate. */
  latency?: { p50: Spread; p99: Spread; p999: Spread; max: Spread };
  samples: Sample[];
}

/** The length and number of rounds. */
export interface Effort {
  rounds: number;
  seconds: number;
  /** 0 for no warm-up. */
  warmUpSeconds: number;
}

/**
 * Runs the sides in alternating order, so that other load on the machine affects all of them alike. Rejects if a side
 * gave unexpected responses.
 */
export async function compareSides(sides: readonly Side[], effort: Effort): Promise<SideResult[]> {
  if (effort.warmUpSeconds > 0) for (const side of sides) await runSide(side, effort.warmUpSeconds);
  const samples = new Map<Side, Sample[]>(sides.map((side) => [side, []]));
  const times = new Map<Side, ProcessTimes[]>(sides.map((side) => [side, []]));
  for (let round = 0; round < effort.rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const before = readProcessTimes(side.processes);
      const sample = await runSide(side, effort.seconds);
      samples.get(side)!.push(sample);
      times.get(side)!.push(perOperation(timesBetween(before, readProcessTimes(side.processes)), sample));
    }
  }
  const results = sides.map((side) => summarise(side, samples.get(side)!, times.get(side)!));
  for (const [n, side] of sides.entries()) await measureSide(side, results[n]!, effort);
  return results;
}

async function measureSide(side: Side, result: SideResult, { rounds, seconds }: Effort): Promise<void> {
  if (side.latency === undefined) return;
  const latencies: Latency[] = [];
  for (let round = 0; round < rounds; round += 1)
    latencies.push(await side.latency(result.rate.median / 2, seconds));
  const spread = (name: keyof Latency) => spreadOf(latencies.map((latency) => latency[name]));
  result.latency = { p50: spread('p50'), p99: spread('p99'), p999: spread('p999'), max: spread('max') };
}

async function runSide(side: Side, seconds: number): Promise<Sample> {
  const sample = await side.run(seconds);
  if (sample.failures) throw new Error(`${side.name}: ${sample.failures} responses were not as expected`);
  return sample;
}

function perOperation(times: ProcessTimes, { operations }: Sample): ProcessTimes {
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, (ms * 1_000) / operations]));
}

function summarise(side: Side, samples: Sample[], times: ProcessTimes[]): SideResult {
  const timeOf = (name: string) => spreadOf(times.map((time) => time[name]!));
  return {
    name: side.name,
    rate: spreadOf(samples.map(({ rate }) => rate)),
    cpuMicros: Object.fromEntries(Object.keys(side.processes).map((name) => [name, timeOf(name)])),
    cpuRounds: times.map((time) => Object.values(time).reduce((sum, micros) => sum + micros, 0)),
    samples,
  };
}

/** Divides the first side's rate by the second side's in each round. Returns the spread of these ratios. */
export function ratioOf(first: SideResult, second: SideResult): Spread {
  return spreadOf(first.samples.map(({ rate }, round) => rate / second.samples[round]!.rate));
}

/**
 * Divides the second side's CPU time per operation by the first side's in each round. Returns the spread of these
 * ratios. Other load on the machine hardly affects them, unlike ratios of rates.
 */
export function cpuRatioOf(first: SideResult, second: SideResult): Spread {
  return spreadOf(first.cpuRounds.map((micros, round) => second.cpuRounds[round]! / micros));
}
