import {
  BOOKMARK_FIELDS,
  type FieldName,
  namesGivenTo,
  type Operation,
} from '../../src/domain/bookmark-fields.ts';

/** Values of every field in `BOOKMARK_FIELDS`, as requests give them. */

/** Returns a value of a field, but never the field's default. Except for booleans, the value differs for each `n`. */
export function sampleOf(name: FieldName, n: number): unknown {
  const field = BOOKMARK_FIELDS[name];
  if (field.kind === 'url') return `https://example.org/${n}`;
  if (field.kind === 'text') return `${name}number${n}`;
  if (field.kind === 'tags') return [`Tag ${n}`, 'Tag'];
  if (field.kind === 'time') return `200${n}-02-03T04:05:06.789Z`;
  return !(field as { default: boolean }).default;
}

/** Returns a value for each field that a request of this operation may have. */
export const samplesFor = (operation: Operation, n: number): Record<string, unknown> =>
  Object.fromEntries(namesGivenTo(operation).map((name) => [name, sampleOf(name, n)]));
