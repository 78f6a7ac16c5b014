/** A random generator. Generators with the same seed return the same values. */
export interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number;
  /** Returns an integer from `min` to `max`, inclusive. */
  integer(min: number, max: number): number;
  /** Returns one of these values. */
  pick<T>(from: readonly T[]): T;
  chance(share: number): boolean;
}

/** Returns a Mulberry32 generator, which is small and fast, and returns the same values on every machine. */
export function seedRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    pick: (from) => from[integer(0, from.length - 1)]!,
    chance: (share) => next() < share,
  };
}

/** Returns a separate seed for a part of the run, so that the parts do not affect each other's values. */
export const deriveSeed = (seed: number, part: number): number => Math.imul(seed + 1, 2_654_435_761) ^ part;
