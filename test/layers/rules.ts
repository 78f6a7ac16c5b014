import { readSource } from './source.ts';

/** The files that may read the environment. */
export const ENVIRONMENT_READERS = ['src/config.ts', 'src/cli/environment.ts'];

/** The folders and files that may contain SQL. `cluster.ts` creates the embedded server's one database. */
export const SQL_PLACES = ['src/store', 'src/embedded/cluster.ts', 'src/client/sqlite-store.ts'];

const OBJECTS =
  'table|index|function|procedure|trigger|type|view|schema|role|user|database|extension|sequence';

/** Patterns of SQL statements. A sentence that begins with "Select" does not match. */
const STATEMENTS = [
  /^\s*(select|SELECT)\s/,
  /\bselect\s[^!?]+\sfrom\s+[\w.]+\s+(where|order|limit|join|group)\b/i,
  /\binsert\s+into\s+[\w.]+\s*(\(|values|select|default)/i,
  /\bdelete\s+from\s+[\w.]+(\s+\w+)?\s*($|where|using)/i,
  /\bupdate\s+[\w.]+\s+(\w+\s+)?set\s+\w+\s*=/i,
  /^\s*with\s+(recursive\s+)?\w+\s*(\([^)]*\))?\s*as\s+(not\s+)?(materialized\s*)?\(/i,
  new RegExp(`^\\s*(create|alter|drop)\\s+(or\\s+replace\\s+)?(\\w+\\s+)?(${OBJECTS})\\s`, 'i'),
  /^\s*(truncate|vacuum|analyze|listen|notify|lock\s+table)\s+\w+\s*;?\s*$/i,
  /^\s*(begin|commit|rollback)\s*;?\s*$/i,
];

const isSql = (text: string): boolean => STATEMENTS.some((statement) => statement.test(text));

/** Returns whether a path equals one of these places or is below one. */
const isWithin = (path: string, places: readonly string[]): boolean =>
  places.some((place) => path === place || path.startsWith(`${place}/`));

/** Returns the places of a file in `src/` that read the environment or contain SQL, although the file may not. */
export function findBreaches(path: string, code: string): string[] {
  const { environment, tags, texts } = readSource(path, code);
  const sql = [
    ...tags.filter(({ text }) => text === 'sql' || text === 'unsafe'),
    ...texts.filter(({ text }) => isSql(text)),
  ];
  return [
    ...(isWithin(path, ENVIRONMENT_READERS) ? [] : environment).map(
      ({ line }) => `${path}:${line}: may not read the environment or pass on the process`,
    ),
    ...(isWithin(path, SQL_PLACES) ? [] : sql).map(
      ({ text, line }) => `${path}:${line}: SQL belongs in src/store and sql/: ${text.trim().slice(0, 60)}`,
    ),
  ];
}
