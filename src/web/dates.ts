import { locales } from './texts/language.ts';

const relative = new Intl.RelativeTimeFormat(locales, { numeric: 'auto', style: 'short' });
const absolute = new Intl.DateTimeFormat(locales, { dateStyle: 'full', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(locales, { dateStyle: 'medium' });
const clock = new Intl.DateTimeFormat(locales, { timeStyle: 'medium' });

/** All three are in seconds. */
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Formats how long ago a time is, for example `5 min. ago` or `yesterday`. After four weeks, formats its date instead.
 */
export function formatAgo(time: string, nowMs = Date.now()): string {
  const seconds = Math.round((Date.parse(time) - nowMs) / 1_000);
  const distance = Math.abs(seconds);
  if (distance < MINUTE) return relative.format(0, 'minute');
  if (distance < HOUR) return relative.format(Math.trunc(seconds / MINUTE), 'minute');
  if (distance < DAY) return relative.format(Math.trunc(seconds / HOUR), 'hour');
  if (distance < 28 * DAY) return relative.format(Math.trunc(seconds / DAY), 'day');
  return formatDay(time);
}

/** Formats the full date and the time of day to the minute. */
const formatMoment = (time: string): string => absolute.format(Date.parse(time));

export const formatDay = (time: string): string => day.format(Date.parse(time));

/** Formats the time of day with seconds. */
export const formatClock = (ms: number): string => clock.format(ms);

/** Fills a `<time>` element with the text of `formatAgo`. The element's tooltip shows the date and the time of day. */
export function fillTime(element: HTMLTimeElement, time: string): void {
  element.dateTime = time;
  element.title = formatMoment(time);
  element.textContent = formatAgo(time);
}
