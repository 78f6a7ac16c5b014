/**
 * The fields of a bookmark (spec 2.2), described once. Types, body schemas, the checks and columns of an import, the
 * responses' schema, what search looks into and what `reconcile` compares are made from this description. A plain module:
 * the client carries it as well.
 */

/** The requests that may give a field. */
export type Operation = 'add' | 'edit' | 'import';

interface FieldBase {
  givenTo: readonly Operation[];
  examples: readonly unknown[];
}

/** Search looks into fields with `isSearched`, each a line of the search text, in this order. */
type TextField = FieldBase & { kind: 'text'; max: number; default: string; isSearched?: true };
type UrlField = FieldBase & { kind: 'url'; max: number; isRequired: true; isSearched?: true };
type TagsField = FieldBase & { kind: 'tags'; default: readonly string[] };
type TimeField = FieldBase & { kind: 'time' };
type FlagField = FieldBase & { kind: 'flag'; default: boolean };

/** Lengths are Unicode code points, after trimming. A request that may leave a field away gives its `default`. */
export type Field = TextField | UrlField | TagsField | TimeField | FlagField;

/** In the order in which a bookmark shows them, after its id. */
export const BOOKMARK_FIELDS = {
  /** Absolute, http or https; stored as sent. */
  url: {
    kind: 'url',
    max: 8_192,
    isRequired: true,
    isSearched: true,
    givenTo: ['add', 'import'],
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
   * In a bookmark: in the order of their folded names. In a request: their names; those that do not exist are created.
   * An edit replaces the tags.
   */
  tags: {
    kind: 'tags',
    default: [],
    givenTo: ['add', 'edit', 'import'],
    examples: [['reading', 'later']],
  },
  /** UTC, ISO 8601 with milliseconds and `Z`. An import may give any RFC 3339 time with offset; now when absent. */
  created_at: { kind: 'time', givenTo: ['import'], examples: ['2026-01-31T12:00:00.000Z'] },
  /** As `created_at`, which it is when absent. */
  updated_at: { kind: 'time', givenTo: ['import'], examples: ['2026-01-31T12:00:00.000Z'] },
} as const satisfies Record<string, Field>;

export type BookmarkFields = typeof BOOKMARK_FIELDS;
export type FieldName = keyof BookmarkFields;

/** The fields that an operation may give. */
export type GivenName<Op extends Operation> = {
  [Name in FieldName]: Op extends BookmarkFields[Name]['givenTo'][number] ? Name : never;
}[FieldName];

export const FIELD_NAMES = Object.keys(BOOKMARK_FIELDS) as readonly FieldName[];

/** The names of the fields that an operation may give, in their order. */
export const namesGivenTo = <Op extends Operation>(operation: Op): readonly GivenName<Op>[] =>
  FIELD_NAMES.filter((name) =>
    (BOOKMARK_FIELDS[name].givenTo as readonly Operation[]).includes(operation),
  ) as GivenName<Op>[];

type SearchedName = {
  [Name in FieldName]: BookmarkFields[Name] extends { isSearched: true } ? Name : never;
}[FieldName];

/** What search looks into. */
export const SEARCHED_NAMES = FIELD_NAMES.filter(
  (name) => 'isSearched' in BOOKMARK_FIELDS[name],
) as readonly SearchedName[];
