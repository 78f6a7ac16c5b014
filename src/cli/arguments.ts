import { InvalidArgumentError, Option } from 'commander';

/** Parsers for command arguments. */

/** Parses an integer from `min` to `max`. */
export const integerFrom =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d{1,16}$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`expected an integer ${range}`);
  };

/**
 * Collects the ids of a repeated argument. Negative ids are those of bookmarks in a local copy that were not sent to
 * the service yet.
 */
export const gatherIds = (text: string, before: number[] = []): number[] => [
  ...before,
  text.startsWith('-') ? -integerFrom(1)(text.slice(1)) : integerFrom(1)(text),
];

/** Collects the tag names of a repeated option. Each value may hold several names, separated by commas. */
export const gatherTags = (text: string, before: string[] = []): string[] => [
  ...before,
  ...text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean),
];

/** Splits ids into batches of 500, the service's limit for one request. */
export const toBatches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / 500) }, (_, n) => ids.slice(n * 500, (n + 1) * 500));

/** Returns the option `--tag`, which may be repeated. */
export const tagsOption = (description: string): Option =>
  new Option('-t, --tag <name>', description).argParser(gatherTags);
