/** The parts of a time in ISO 8601. Everything after the date may be absent, and so may seconds and offset. */
const DATE = String.raw`(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})`;
const TIME = String.raw`(?<hour>\d{2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:\.(?<fraction>\d+))?)?`;
const OFFSET = String.raw`(?:Z| ?(?<sign>[+-])(?<offsetHour>\d{2})(?::?(?<offsetMinute>\d{2}))?)`;
const ISO8601 = new RegExp(`^${DATE}(?:[T ]${TIME}${OFFSET}?)?$`, 'i');

/** Matches the service's own format, except for the days 29 to 31. A text that matches is valid as it is. */
const PLAIN =
  /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

const MIN_MS = Date.parse('0001-01-01T00:00:00.000Z');
const MAX_MS = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Whether a moment is in the first second of a month. A leap second is always at the end of a month, so the second
 * after it is the first second of the next month.
 */
function isMonthStart(ms: number): boolean {
  const date = new Date(ms);
  const isFirstSecond = date.getUTCHours() === 0 && date.getUTCMinutes() === 0 && date.getUTCSeconds() === 0;
  return date.getUTCDate() === 1 && isFirstSecond;
}

/**
 * Converts a time in ISO 8601 to UTC with milliseconds and `Z`, and drops finer digits. A time without an offset is UTC.
 * A date alone is its midnight. A leap second becomes the second after it. Returns undefined for any other text, for a
 * day that does not exist, and for a UTC year outside of 0001 to 9999 (docs/contract.md, decision 18).
 */
export function parseTimestamp(text: string): string | undefined {
  if (PLAIN.test(text)) return text;
  const parts = ISO8601.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const { fraction = '', sign } = parts;
  const numberOf = (name: string) => Number(parts[name] ?? 0);
  const [year, month, day] = [numberOf('year'), numberOf('month'), numberOf('day')];
  const [hour, minute, second] = [numberOf('hour'), numberOf('minute'), numberOf('second')];
  const [offsetHour, offsetMinute] = [numberOf('offsetHour'), numberOf('offsetMinute')];
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  // `Date.UTC` would turn the years 0 to 99 into 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (year < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second, Number(fraction.padEnd(3, '0').slice(0, 3)));
  const offsetMs = (offsetHour * 60 + offsetMinute) * 60_000;
  const ms = sign === '-' ? date.getTime() + offsetMs : date.getTime() - offsetMs;
  if (second === 60 && !isMonthStart(ms)) return undefined;
  return ms >= MIN_MS && ms <= MAX_MS ? new Date(ms).toISOString() : undefined;
}
