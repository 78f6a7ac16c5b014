import {
  BOOKMARK_FIELDS,
  FIELD_DEFAULTS,
  type FieldName,
  namesGivenTo,
  type Operation,
} from '../../src/domain/bookmark-fields.ts';
import type { Bookmark } from '../../src/domain/resources.ts';

/** Values of every field in `BOOKMARK_FIELDS`. */

/** Returns a bookmark as the service returns it. Fields that are not given have their defaults. */
export const makeBookmark = (fields: Partial<Bookmark> = {}): Bookmark =>
  ({
    id: 1,
    url: 'https://example.org/',
    ...FIELD_DEFAULTS,
    created_at: '2026-01-31T12:00:00.000Z',
    updated_at: '2026-01-31T12:00:00.000Z',
    ...fields,
  }) as Bookmark;

/**
 * Returns a value of a field. It differs for each `n` and is never the field's default. But a boolean has its default if
 * `n` is even, so that an edit from an odd to an even `n` changes every field.
 */
export function sampleOf(name: FieldName, n: number): unknown {
  const field = BOOKMARK_FIELDS[name];
  if (field.kind === 'url') return `https://example.org/${n}`;
  if (field.kind === 'text') return `${name}number${n}`;
  if (field.kind === 'tags') return [`Tag ${n}`, 'Tag'];
  if (field.kind === 'time') return `200${n}-02-03T04:05:06.789Z`;
  return (field as { default: boolean }).default === (n % 2 === 0);
}

/** Returns a value for each field that a request of this operation may have, as the request gives it. */
export const samplesFor = (operation: Operation, n: number): Record<string, unknown> =>
  Object.fromEntries(namesGivenTo(operation).map((name) => [name, sampleOf(name, n)]));
