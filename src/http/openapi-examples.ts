/** Builds examples of whole bodies for the API reference. They consist of the examples of the bodies' fields. */

interface Schema {
  $ref?: string;
  examples?: unknown[];
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  type?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  minimum?: number;
}

/**
 * Returns a value that fits a JSON Schema: the schema's example, its default, or a value built from the examples of its
 * parts. `shared` contains, by name, the schemas that references point to.
 */
export function exampleOf(schema: Schema, shared: Record<string, Schema>): unknown {
  const { $ref, examples, type, properties = {}, items = {} } = schema;
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf('/') + 1);
    return exampleOf(shared[name]!, shared);
  }
  const candidates = [...(examples ?? []), schema.default, schema.const, ...(schema.enum ?? [])];
  const example = candidates.find((value) => value !== undefined);
  if (example !== undefined) return example;
  const [alternative] = schema.anyOf ?? schema.oneOf ?? [];
  if (alternative !== undefined) return exampleOf(alternative, shared);
  if (type === 'array') return [exampleOf(items, shared)];
  if (type === 'boolean') return false;
  if (type === 'integer') return schema.minimum ?? 0;
  if (type !== 'object') return '';
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, exampleOf(property, shared)]),
  );
}
