/** Draws that a seed repeats. */
export interface Random {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** One of these. */
  pick<T>(from: readonly T[]): T;
  chance(share: number): boolean;
}

/** Mulberry32: small, quick, and the same on every machine. */
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

/** A seed of its own for a part of the run, so that what one part draws does not move the others. */
export const deriveSeed = (seed: number, part: number): number => Math.imul(seed + 1, 2_654_435_761) ^ part;
