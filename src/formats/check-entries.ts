import { BOOKMARK_FIELDS, type Field, namesGivenTo } from '../domain/bookmark-fields.ts';
import { BOUNDS } from '../domain/bounds.ts';
import { cleanTagName, cutText, foldText, textRule } from '../domain/text.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import { findUrlFault } from '../domain/web-url.ts';
import { isObject } from './entry.ts';

/** Finds the entries that an import will refuse. The messages are the same as in the service's response. */

/** An entry that the service would refuse. */
export interface Refusal {
  /** The index of the entry, from 0. */
  index: number;
  url: string | null;
  error: string;
}

/** The maximum length of a text in a refusal, in code points. The service's response has the same maximum. */
const ERROR_TEXT_LENGTH = 200;

// Each of the next three functions checks the value of a field. For an invalid value, it returns the part of the error
// message that follows the field's name. For a valid value, it returns undefined.

function findTagsFault(value: unknown): string | undefined {
  if (!Array.isArray(value)) return ': expected an array';
  const keys = new Set<string>();
  for (const [index, tag] of value.entries()) {
    const raw: unknown = isObject(tag) && 'name' in tag ? tag.name : tag;
    if (typeof raw !== 'string') return `[${index}]: expected a string`;
    const name = cleanTagName(raw);
    const rule = textRule(name, BOUNDS.tagName, 1);
    if (rule !== undefined) return `[${index}]: ${rule}`;
    keys.add(foldText(name));
    if (keys.size > BOUNDS.tagsPerBookmark) return `: at most ${BOUNDS.tagsPerBookmark} tags`;
  }
  return undefined;
}

function findTextFault(value: unknown, field: Field & { kind: 'url' | 'text' }): string | undefined {
  const isUrl = field.kind === 'url';
  if (typeof value !== 'string') return ': expected a string';
  const text = value.trim();
  const minLength = isUrl ? 1 : 0;
  const rule = textRule(text, field.max, minLength) ?? (isUrl ? findUrlFault(text) : undefined);
  return rule && `: ${rule}`;
}

function findFieldFault(value: unknown, field: Field): string | undefined {
  if (value === undefined || value === null) return field.kind === 'url' ? ': is required' : undefined;
  switch (field.kind) {
    case 'url':
    case 'text':
      return findTextFault(value, field);
    case 'tags':
      return findTagsFault(value);
    case 'time':
      if (typeof value !== 'string') return ': expected a string';
      return parseTimestamp(value) === undefined
        ? ': expected an ISO 8601 time of the years 0001 to 9999'
        : undefined;
    case 'flag':
      return typeof value === 'boolean' ? undefined : ': expected true or false';
  }
}

/** Returns the error that the service will return for an entry, or undefined if the entry is valid. */
function findEntryFault(entry: unknown): string | undefined {
  if (!isObject(entry)) return 'expected an object';
  for (const name of namesGivenTo('import')) {
    const fault = findFieldFault(entry[name], BOOKMARK_FIELDS[name]);
    if (fault !== undefined) return `${name}${fault}`;
  }
  return undefined;
}

/** Lists the entries that the service will refuse, in order. */
export function findRefusals(entries: readonly unknown[]): Refusal[] {
  return entries.flatMap((entry, index) => {
    const fault = findEntryFault(entry);
    if (fault === undefined) return [];
    const url = isObject(entry) && typeof entry.url === 'string' ? entry.url : null;
    return [{ index, url: url && cutText(url, ERROR_TEXT_LENGTH), error: cutText(fault, ERROR_TEXT_LENGTH) }];
  });
}
