import { InvalidArgumentError, Option } from 'commander';

/** Parses the arguments of commands. The parsers throw commander's `InvalidArgumentError`. */

/** Returns a parser of an integer from `min` to `max`. */
export const integerFrom =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d{1,16}$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`expected an integer ${range}`);
  };

/**
 * Collects the ids of a repeated argument. In a local copy, a bookmark has a negative id until it is sent to the
 * service.
 */
export const gatherIds = (text: string, earlier: number[] = []): number[] => [
  ...earlier,
  text.startsWith('-') ? -integerFrom(1)(text.slice(1)) : integerFrom(1)(text),
];

/**
 * Collects the tag names of a repeated option. Each value may hold several names, separated by commas. The completion
 * scripts offer tags for options with this parser.
 */
export const gatherTags = (text: string, earlier: string[] = []): string[] => [
  ...earlier,
  ...text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean),
];

/** Reads an argument that is the name of a tag. The completion scripts offer tags for arguments with this parser. */
export const readTagName = (text: string): string => text;

/** The service accepts at most this many ids in one request. */
const BATCH_SIZE = 500;

/** Splits ids into batches of `BATCH_SIZE`. */
export const toBatches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / BATCH_SIZE) }, (_, n) =>
    ids.slice(n * BATCH_SIZE, (n + 1) * BATCH_SIZE),
  );

/** Returns the option `--tag`, which may be repeated. */
export const tagsOption = (description: string): Option =>
  new Option('-t, --tag <name>', description).argParser(gatherTags);
