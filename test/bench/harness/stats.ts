/** The median and the extremes of several rounds. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** Returns the spread of one or more values. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Latencies of requests, in milliseconds. */
export interface Latency {
  p50: number;
  p99: number;
  p999: number;
  max: number;
}

/** Returns the percentiles of latencies, which may be in any order. Returns zeros if there are none. */
export function latencyOf(valuesMs: Float64Array): Latency {
  const sorted = valuesMs.slice().sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) ?? 0 };
}

/** A growing list of numbers. Appending creates garbage only when the list's memory is full and has to grow. */
export class Samples {
  #values = new Float64Array(65_536);
  #length = 0;

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length++] = value;
  }

  get length(): number {
    return this.#length;
  }

  take(): Float64Array {
    return this.#values.slice(0, this.#length);
  }
}
