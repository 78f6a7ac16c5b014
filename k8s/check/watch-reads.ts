/** A value that notes which of its fields are looked at. */
export interface WatchedValue {
  proxy: object;
  /** Paths of the fields that nobody has looked at, the outermost only. */
  listUnread(): string[];
}

/** Wraps a value of plain objects and arrays. Listing the keys of an object counts as looking at all of its fields. */
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
