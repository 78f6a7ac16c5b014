/** A value that records which of its fields were read. */
export interface WatchedValue {
  proxy: object;
  /** Returns the paths of unread fields. Leaves out fields inside an unread field. */
  listUnread(): string[];
}

/**
 * Wraps a value of plain objects and arrays, and records which fields are read. Listing an object's keys counts as
 * reading all its fields.
 */
export function watchReads(value: object): WatchedValue {
  const read = new Set<string>();
  const wrap = (part: object, path: string): object =>
    new Proxy(part, {
      get(target, key) {
        const field: unknown = Reflect.get(target, key);
        if (typeof key === 'symbol' || !Object.hasOwn(target, key)) return field;
        const fieldPath = `${path}.${key}`;
        read.add(fieldPath);
        return isObject(field) ? wrap(field, fieldPath) : field;
      },
      ownKeys(target) {
        for (const key of Object.keys(target)) read.add(`${path}.${key}`);
        return Reflect.ownKeys(target);
      },
    });
  const listUnread = (part: unknown, path: string): string[] => {
    if (!isObject(part)) return [];
    return Object.entries(part).flatMap(([key, field]) => {
      const fieldPath = `${path}.${key}`;
      return read.has(fieldPath) ? listUnread(field, fieldPath) : [fieldPath.slice(1)];
    });
  };
  return { proxy: wrap(value, ''), listUnread: () => listUnread(value, '') };
}

const isObject = (value: unknown): value is object => value !== null && typeof value === 'object';
