import { locales } from './texts/language.ts';

const relative = new Intl.RelativeTimeFormat(locales, { numeric: 'auto', style: 'short' });
const absolute = new Intl.DateTimeFormat(locales, { dateStyle: 'full', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(locales, { dateStyle: 'medium' });
const clock = new Intl.DateTimeFormat(locales, { timeStyle: 'medium' });

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `5 min. ago`, `yesterday`; a date if it is more than four weeks ago. */
export function formatAgo(time: string, nowMs = Date.now()): string {
  const seconds = Math.round((Date.parse(time) - nowMs) / 1_000);
  const distance = Math.abs(seconds);
  if (distance < MINUTE) return relative.format(0, 'minute');
  if (distance < HOUR) return relative.format(Math.trunc(seconds / MINUTE), 'minute');
  if (distance < DAY) return relative.format(Math.trunc(seconds / HOUR), 'hour');
  if (distance < 28 * DAY) return relative.format(Math.trunc(seconds / DAY), 'day');
  return formatDay(time);
}

/** The day and the minute, in words. */
const formatMoment = (time: string): string => absolute.format(Date.parse(time));

export const formatDay = (time: string): string => day.format(Date.parse(time));

/** The time of the day with seconds. */
export const formatClock = (ms: number): string => clock.format(ms);

/** A `<time>` that shows how long ago it was, and the moment when the pointer is over it. */
export function fillTime(element: HTMLTimeElement, time: string): void {
  element.dateTime = time;
  element.title = formatMoment(time);
  element.textContent = formatAgo(time);
}
