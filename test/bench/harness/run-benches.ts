import type { Bench, Plan } from './bench.ts';
import type { Line } from './report.ts';

/**
 * Runs benchmarks one after another and prints the result of each. An error ends only the benchmark that threw it.
 * Returns the names of the benchmarks that failed.
 */
export async function runBenches(
  benches: readonly Bench[],
  plan: Plan,
  print: (lines: readonly Line[]) => void,
): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of benches) {
    const startedAt = performance.now();
    try {
      print(await run(plan));
    } catch (error) {
      failed.push(name);
      console.error(`${name} FAILED:`, error);
    }
    console.error(`${name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  return failed;
}
