/**
 * The fields of a bookmark (spec 2.2), described once. This description makes the types, the schemas of bodies and
 * responses, the checks and columns of an import, the search text, and the fields that `reconcile` compares. It
 * imports nothing: the client contains it too.
 */

/** The requests in which a client may send a field. */
export type Operation = 'add' | 'edit' | 'import';

interface FieldBase {
  givenTo: readonly Operation[];
  examples: readonly unknown[];
}

/** Search reads the fields with `isSearched`: a line for each in the search text, in this order. */
type TextField = FieldBase & { kind: 'text'; max: number; default: string; isSearched?: true };
type UrlField = FieldBase & { kind: 'url'; max: number; isRequired: true; isSearched?: true };
type TagsField = FieldBase & { kind: 'tags'; default: readonly string[] };
type TimeField = FieldBase & { kind: 'time' };
type FlagField = FieldBase & { kind: 'flag'; default: boolean };

/** Lengths are Unicode code points, after trimming. A field that a request may omit has a `default`. */
export type Field = TextField | UrlField | TagsField | TimeField | FlagField;

/** In the order of a bookmark's fields in a response, after its id. */
export const BOOKMARK_FIELDS = {
  /** Absolute, http or https; stored as sent. */
  url: {
    kind: 'url',
    max: 8_192,
    isRequired: true,
    isSearched: true,
    givenTo: ['add', 'edit', 'import'],
    examples: ['https://example.org/'],
  },
  title: {
    kind: 'text',
    max: 2_048,
    default: '',
    isSearched: true,
    givenTo: ['add', 'edit', 'import'],
    examples: ['An example'],
  },
  comment: {
    kind: 'text',
    max: 10_000,
    default: '',
    isSearched: true,
    givenTo: ['add', 'edit', 'import'],
    examples: ['to read'],
  },
  /**
   * In a bookmark: in the order of their folded names. In a request: names; a tag that does not exist is created. An
   * edit replaces all tags.
   */
  tags: {
    kind: 'tags',
    default: [],
    givenTo: ['add', 'edit', 'import'],
    examples: [['reading', 'later']],
  },
  /** UTC, ISO 8601 with milliseconds and `Z`. A request may send any RFC 3339 time with offset; default: now. */
  created_at: { kind: 'time', givenTo: ['add', 'import'], examples: ['2026-01-31T12:00:00.000Z'] },
  /** As `created_at`, which is also its default: in an add always. */
  updated_at: { kind: 'time', givenTo: ['import'], examples: ['2026-01-31T12:00:00.000Z'] },
} as const satisfies Record<string, Field>;

export type BookmarkFields = typeof BOOKMARK_FIELDS;
export type FieldName = keyof BookmarkFields;

/** The names of the fields that a client may send in an operation. */
export type GivenName<Op extends Operation> = {
  [Name in FieldName]: Op extends BookmarkFields[Name]['givenTo'][number] ? Name : never;
}[FieldName];

export const FIELD_NAMES = Object.keys(BOOKMARK_FIELDS) as readonly FieldName[];

/** The names of the fields that a client may send in an operation, in the order of the fields. */
export const namesGivenTo = <Op extends Operation>(operation: Op): readonly GivenName<Op>[] =>
  FIELD_NAMES.filter((name) =>
    (BOOKMARK_FIELDS[name].givenTo as readonly Operation[]).includes(operation),
  ) as GivenName<Op>[];

type SearchedName = {
  [Name in FieldName]: BookmarkFields[Name] extends { isSearched: true } ? Name : never;
}[FieldName];

/** The names of the fields that search reads. */
export const SEARCHED_NAMES = FIELD_NAMES.filter(
  (name) => 'isSearched' in BOOKMARK_FIELDS[name],
) as readonly SearchedName[];
