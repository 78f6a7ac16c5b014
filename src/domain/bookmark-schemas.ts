import { z } from 'zod';
import {
  BOOKMARK_FIELDS,
  type BookmarkFields,
  FIELD_NAMES,
  type Field,
  type FieldName,
  type GivenName,
  namesGivenTo,
  type Operation,
} from './bookmark-fields.ts';
import { importedTagNames, tagNames, text, timestamp, url } from './fields.ts';

/** Schemas of the bookmarks in requests, derived from the description of the fields. */

/** For each kind of field, the function that makes the schema of such a field in a request. */
const GIVEN = {
  url: (field: Field & { kind: 'url' }) => url(field),
  text: (field: Field & { kind: 'text' }) => text(field),
  tags: () => tagNames,
  time: () => timestamp,
  flag: () => z.boolean(),
};

/** Like `GIVEN`, for the entries of an import. There, a tag may also be an object. */
const IMPORTED = { ...GIVEN, tags: () => importedTagNames };

interface Kinds {
  add: typeof GIVEN;
  edit: typeof GIVEN;
  import: typeof IMPORTED;
}

type Schema<Op extends Operation, Name extends FieldName> = ReturnType<
  Kinds[Op][BookmarkFields[Name]['kind']]
>;

/** The type of a field's schema. An omitted field gets its default, except in an edit, which leaves it unchanged. */
type GivenSchema<Op extends Operation, Name extends FieldName> = Op extends 'edit'
  ? z.ZodOptional<Schema<Op, Name>>
  : BookmarkFields[Name] extends { isRequired: true }
    ? Schema<Op, Name>
    : BookmarkFields[Name] extends { default: unknown }
      ? z.ZodPrefault<Schema<Op, Name>>
      : z.ZodOptional<Schema<Op, Name>>;

/** Makes the schema of a field in the requests of an operation. */
function givenSchema(name: FieldName, operation: Operation): z.ZodType {
  const field: Field = BOOKMARK_FIELDS[name];
  const schemaMakers = operation === 'import' ? IMPORTED : GIVEN;
  const schema: z.ZodType = schemaMakers[field.kind](field as never);
  const withExamples = schema.meta({ ...schema.meta(), examples: [...field.examples] });
  if (operation === 'edit') return withExamples.optional();
  if ('isRequired' in field) return withExamples;
  return 'default' in field ? withExamples.prefault(field.default) : withExamples.optional();
}

/** Returns the schemas of the fields in an operation's body, by name. */
const shapeOf = <Op extends Operation>(operation: Op) =>
  Object.fromEntries(namesGivenTo(operation).map((name) => [name, givenSchema(name, operation)])) as {
    [Name in GivenName<Op>]: GivenSchema<Op, Name>;
  };

/** The url in a request that looks up bookmarks. */
export const bookmarkUrl = givenSchema('url', 'add') as Schema<'add', 'url'>;

/** The body of `/bookmarks/add`. */
export const addedBookmark = z.object(shapeOf('add'));

/** The body of `/bookmarks/edit` without the id. */
export const bookmarkChange = z.object(shapeOf('edit'));

/** An entry of an import (docs/contract.md, decision 18). */
export const importedEntry = z.object(shapeOf('import'));

/** Returns the schemas of a bookmark's fields in a response. `kinds` has a schema for each kind of field. */
export function shownFields<Kinds extends Record<Field['kind'], z.ZodType>>(
  kinds: Kinds,
): { [Name in FieldName]: Kinds[BookmarkFields[Name]['kind']] } {
  const shape = FIELD_NAMES.map((name) => {
    const { kind, examples } = BOOKMARK_FIELDS[name];
    // The examples of tags are names, as in a request. In a response, tags are objects with examples of their own.
    return [
      name,
      kind === 'tags' ? kinds.tags : kinds[kind].meta({ ...kinds[kind].meta(), examples: [...examples] }),
    ];
  });
  return Object.fromEntries(shape);
}
