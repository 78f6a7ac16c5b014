import { textOf } from './entry.ts';

/** Reads the dates of other programs. A date without a time zone is UTC, wherever the program runs. */

/** The order of the parts in dates such as `01/02/2020`, which some programs write day first, and others month first. */
export type DateOrder = 'day-first' | 'month-first';

/** Whether a value means that there is no date: it is empty, or zero in any notation. */
export const isNoDate = (value: unknown): boolean => /^[0\s:.-]*$/.test(textOf(value));

/** Milliseconds from 1601, where Windows and Chromium begin to count, to 1970. */
const MS_FROM_1601 = 11_644_473_600_000;

/**
 * Converts a numeric time to milliseconds since 1970. The number of digits shows the unit. A number of 17 digits counts
 * microseconds since 1601, as Chromium does. A number of 18 digits counts 100 ns since 1601, as Windows does. The other
 * numbers count from 1970.
 */
function epochToMs(text: string): number {
  const value = Number(text);
  // Dates before 1970 are negative numbers.
  const digits = /\d+/.exec(text)?.[0].length ?? 0;
  if (digits <= 11) return value * 1_000;
  if (digits <= 14) return value;
  if (digits <= 16) return value / 1_000;
  if (digits === 17) return value / 1_000 - MS_FROM_1601;
  return digits === 18 ? value / 10_000 - MS_FROM_1601 : value / 1_000_000;
}

/** Matches `20240115`, `20240115103000` and `20240115103000123`, which are dates although they contain only digits. */
const COMPACT =
  /^(?<year>(?:19|20)\d\d)(?<month>\d\d)(?<day>\d\d)(?:(?<hour>\d\d)(?<minute>\d\d)(?<second>\d\d)(?<fraction>\d{3})?)?$/;

const CLOCK = String.raw`(?:[T ,]+(?<hour>\d{1,2}):(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,](?<fraction>\d+))?)?)?`;
const HALF = String.raw`(?: ?(?<half>[AP])\.?M\.?)?`;
const ZONE = String.raw`(?: ?(?:Z|UTC|GMT)?(?<offset>[+-]\d\d(?::?\d\d)?)?)`;
const TIME = `${CLOCK}${HALF}${ZONE}$`;

const YEAR_FIRST = new RegExp(
  String.raw`^(?<year>\d{4})(?<mark>[-/.])(?<month>\d{1,2})\k<mark>(?<day>\d{1,2})${TIME}`,
  'i',
);
const YEAR_LAST = new RegExp(
  String.raw`^(?<first>\d{1,2})(?<mark>[-/.])(?<other>\d{1,2})\k<mark>(?<year>\d{4})${TIME}`,
  'i',
);

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const MONTH = String.raw`(?<name>jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?`;
const WEEKDAY = '(?:[a-z]{2,9}[.,]? +)?';
/** Matches `Thu, 02 Jan 2020 03:04:05 GMT` and `2-Jan-2020`. */
const DAY_MONTH = new RegExp(
  String.raw`^${WEEKDAY}(?<day>\d{1,2})(?:st|nd|rd|th)?[ -]${MONTH},?[ -](?<year>\d{4})${TIME}`,
  'i',
);
/** Matches `January 2, 2020` and `Thu Jan 02 2020 03:04:05 GMT+0100 (CET)`. */
const MONTH_DAY = new RegExp(
  String.raw`^${WEEKDAY}${MONTH} +(?<day>\d{1,2})(?:st|nd|rd|th)?,? +(?<year>\d{4})${TIME}`,
  'i',
);

type Parts = Partial<Record<string, string>>;

/** Returns the order that the parts of a date show, such as `day-first` for `13/02/2020`. Dots are day first. */
export function findOrder(value: unknown): DateOrder | undefined {
  const { first, other, mark } = YEAR_LAST.exec(textOf(value))?.groups ?? {};
  if (mark === '.' || Number(first) > 12) return 'day-first';
  return Number(other) > 12 ? 'month-first' : undefined;
}

function findParts(text: string, order: DateOrder | undefined): Parts | undefined {
  const withNumbers = COMPACT.exec(text) ?? YEAR_FIRST.exec(text);
  if (withNumbers !== null) return withNumbers.groups;
  const yearLast = YEAR_LAST.exec(text)?.groups;
  if (yearLast !== undefined) {
    const { first, other } = yearLast;
    const found = findOrder(text) ?? order;
    if (found === undefined) return undefined;
    return found === 'day-first'
      ? { ...yearLast, day: first, month: other }
      : { ...yearLast, day: other, month: first };
  }
  // JavaScript writes the name of the zone after the offset.
  const withName = text.replace(/ \([^()]*\)$/, '');
  const named = (DAY_MONTH.exec(withName) ?? MONTH_DAY.exec(withName))?.groups;
  const month = MONTHS.indexOf(named?.name?.slice(0, 3).toLowerCase() ?? '') + 1;
  return named && { ...named, month: String(month) };
}

/** Converts the parts to milliseconds since 1970. Returns NaN for a day or a time that does not exist. */
function partsToMs(parts: Parts): number {
  const numberOf = (name: string) => Number(parts[name] ?? 0);
  const [year, month, day] = [numberOf('year'), numberOf('month'), numberOf('day')];
  const [minute, second] = [numberOf('minute'), numberOf('second')];
  const half = parts.half?.toUpperCase();
  // `12:30 AM` is half an hour after midnight.
  const hour = half === undefined ? numberOf('hour') : (numberOf('hour') % 12) + (half === 'P' ? 12 : 0);
  const date = new Date(0);
  // `Date.UTC` would turn the years 0 to 99 into 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return Number.NaN;
  if (hour > 24 || minute > 59 || second > 60) return Number.NaN;
  date.setUTCHours(hour, minute, second, Number((parts.fraction ?? '').padEnd(3, '0').slice(0, 3)));
  const [, sign, offsetHour = '0', offsetMinute = '0'] =
    /^([+-])(\d\d):?(\d\d)?$/.exec(parts.offset ?? '') ?? [];
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000;
  return sign === '-' ? date.getTime() + offsetMs : date.getTime() - offsetMs;
}

/**
 * Converts a date to RFC 3339 in UTC. `order` decides about dates such as `01/02/2020`. Returns undefined if there is
 * no date, for text that is not a date, for an ambiguous date without an `order`, and for years outside of 1 to 9999.
 */
export function readDate(value: unknown, order?: DateOrder): string | undefined {
  const text = textOf(value);
  if (isNoDate(text)) return undefined;
  const parts = findParts(text, order);
  const isNumber = /^-?\d{1,19}(\.\d+)?$/.test(text);
  const ms = parts !== undefined ? partsToMs(parts) : isNumber ? epochToMs(text) : Number.NaN;
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9_999 ? date.toISOString() : undefined;
}
