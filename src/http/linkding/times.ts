import { z } from 'zod';
import { parseTimestamp } from '../../domain/timestamp.ts';

/** Converts times between linkding's form and this service's form. */

/** The parts of a time as Django reads it. Separators, the time, its minutes and seconds, and the offset may be absent. */
const DATE = String.raw`(?<year>\d{4})-?(?<month>\d{1,2})-?(?<day>\d{1,2})`;
const TIME = String.raw`(?<hour>\d{1,2})(?::?(?<minute>\d{1,2})(?::?(?<second>\d{1,2})(?:[.,](?<fraction>\d+))?)?)?`;
/** A client that does not encode the plus sign of an offset sends a blank. */
const OFFSET = String.raw`(?<utc>Z)|\s*(?<sign>[+ -])(?<offset>\d{2}(?::?\d{2})?)`;
const LINKDING_TIME = new RegExp(`^${DATE}(?:[T ]${TIME}(?:\\s*${OFFSET})?)?$`, 'i');

/** Converts a time to UTC with milliseconds. Returns undefined if the text is no time. */
function parseLinkdingTime(text: string): string | undefined {
  const parts = LINKDING_TIME.exec(text.trim())?.groups;
  if (parts === undefined) return undefined;
  const pad = (name: string) => (parts[name] ?? '0').padStart(2, '0');
  const { year, fraction = '0', sign = '+', offset = '00' } = parts;
  const time = `${pad('hour')}:${pad('minute')}:${pad('second')}.${fraction}`;
  return parseTimestamp(`${year}-${pad('month')}-${pad('day')}T${time}${sign === ' ' ? '+' : sign}${offset}`);
}

/** A time from a client, converted to UTC with milliseconds. */
export const linkdingTime = z.string().transform((text, ctx) => {
  const parsed = parseLinkdingTime(text);
  if (parsed !== undefined) return parsed;
  ctx.issues.push({ code: 'custom', message: 'expected an ISO 8601 time', input: text });
  return z.NEVER;
});

/** Writes a time with six digits of a second, as linkding does. Some clients read no other number of digits. */
export const writeTime = (time: string): string => time.replace(/(\.\d{3})Z$/, '$1000Z');
