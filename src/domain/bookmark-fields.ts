/**
 * The fields of a bookmark (docs/contract.md, section 2.2), described once. Types, schemas, import checks and search
 * texts are all derived from this description. This file imports nothing, because the client contains it too.
 */

/** The kinds of requests that can contain a field. */
export type Operation = 'add' | 'edit' | 'import';

interface FieldBase {
  /** The requests that can contain the field. */
  givenTo: readonly Operation[];
  examples: readonly unknown[];
}

/** Fields with `isSearched` become lines of the search text, in the order of `BOOKMARK_FIELDS`. */
type TextField = FieldBase & { kind: 'text'; max: number; default: string; isSearched?: true };
type UrlField = FieldBase & { kind: 'url'; max: number; isRequired: true; isSearched?: true };
type TagsField = FieldBase & { kind: 'tags'; default: readonly string[] };
type TimeField = FieldBase & { kind: 'time' };
type FlagField = FieldBase & { kind: 'flag'; default: boolean };

/** `max` counts Unicode code points after trimming. A field with a `default` may be omitted. */
export type Field = TextField | UrlField | TagsField | TimeField | FlagField;

/** The fields of a bookmark except the id, in their order in a response. */
export const BOOKMARK_FIELDS = {
  /** Absolute, http or https. Stored as sent. */
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
   * In a response, tags are sorted by normalized name. A request contains only the names of tags. A tag that does not
   * exist is created. An edit replaces all tags of the bookmark.
   */
  tags: {
    kind: 'tags',
    default: [],
    givenTo: ['add', 'edit', 'import'],
    examples: [['reading', 'later']],
  },
  /** UTC, ISO 8601 with milliseconds and `Z`. A request may use other forms (`parseTimestamp`). Default: now. */
  created_at: { kind: 'time', givenTo: ['add', 'import'], examples: ['2026-01-31T12:00:00.000Z'] },
  /** In the format of `created_at`. Default: the value of `created_at`. So both times are equal after an add. */
  updated_at: { kind: 'time', givenTo: ['import'], examples: ['2026-01-31T12:00:00.000Z'] },
} as const satisfies Record<string, Field>;

export type BookmarkFields = typeof BOOKMARK_FIELDS;
export type FieldName = keyof BookmarkFields;

/** The names of the fields that a request of an operation can contain. */
export type GivenName<Op extends Operation> = {
  [Name in FieldName]: Op extends BookmarkFields[Name]['givenTo'][number] ? Name : never;
}[FieldName];

export const FIELD_NAMES = Object.keys(BOOKMARK_FIELDS) as readonly FieldName[];

/** The names of the fields that a request of an operation can contain, in order. */
export const namesGivenTo = <Op extends Operation>(operation: Op): readonly GivenName<Op>[] =>
  FIELD_NAMES.filter((name): name is GivenName<Op> => {
    const { givenTo }: Field = BOOKMARK_FIELDS[name];
    return givenTo.includes(operation);
  });

/** The default of each field that has one. */
export const FIELD_DEFAULTS: Readonly<Partial<Record<FieldName, unknown>>> = Object.fromEntries(
  FIELD_NAMES.flatMap((name) => {
    const field: Field = BOOKMARK_FIELDS[name];
    return 'default' in field ? [[name, field.default]] : [];
  }),
);

type SearchedName = {
  [Name in FieldName]: BookmarkFields[Name] extends { isSearched: true } ? Name : never;
}[FieldName];

/** The names of the fields that search covers. */
export const SEARCHED_NAMES = FIELD_NAMES.filter(
  (name): name is SearchedName => 'isSearched' in BOOKMARK_FIELDS[name],
);
