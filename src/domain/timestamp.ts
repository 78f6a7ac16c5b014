const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/i;

/** Matches the service's own format, except for the days 29 to 31. Such a time needs no other check. */
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
 * Converts an RFC 3339 timestamp to UTC with milliseconds and `Z`, and drops finer digits. A leap second becomes the
 * second after it. Returns undefined for any other text, for a day that does not exist, and for a UTC year outside of
 * 0001 to 9999 (decision 18).
 */
export function parseTimestamp(text: string): string | undefined {
  if (PLAIN.test(text)) return text;
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const offsetHour = Number(match[9] ?? 0);
  const offsetMinute = Number(match[10] ?? 0);
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  // `Date.UTC` would turn the years 0 to 99 into 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (year < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second, Number((match[7] ?? '').padEnd(3, '0').slice(0, 3)));
  const offsetMs = (offsetHour * 60 + offsetMinute) * 60_000 * (match[8] === '-' ? -1 : 1);
  const ms = date.getTime() - offsetMs;
  if (second === 60 && !isMonthStart(ms)) return undefined;
  return ms >= MIN_MS && ms <= MAX_MS ? new Date(ms).toISOString() : undefined;
}
