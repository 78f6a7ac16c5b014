import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SQL_FOLDER = fileURLToPath(new URL('../../../sql/', import.meta.url));

/** A numbered file of `sql/`. Each database runs it once. After its release, its statements never change. */
export interface Migration {
  version: number;
  name: string;
  /** Code for schema version `worksWith` or later works with the database after this migration. */
  worksWith: number;
  text: string;
}

/** A file of `sql/functions/`. */
interface SqlFunction {
  name: string;
  text: string;
}

/** The schema that the code needs. */
export interface SchemaFiles {
  migrations: Migration[];
  functions: SqlFunction[];
}

/** Reads `sql/`. Throws if a file has a wrong name or number, or if a migration lacks the line `-- works-with: N`. */
export function readSchemaFiles(folder: string = SQL_FOLDER): SchemaFiles {
  return { migrations: readMigrations(folder), functions: readFunctions(`${folder}/functions`) };
}

/** The name of a migration's file. */
const MIGRATION_FILE = /^(?<digits>\d{4})-(?<name>[a-z0-9-]+)\.sql$/;

/** The first line of a migration. */
const WORKS_WITH_LINE = /^-- works-with: (?<version>[1-9]\d{0,3})\n/;

/**
 * The line that creates a function. `options` is the text between `create` and `function`, including its final space.
 */
const CREATE_FUNCTION = /^create (?<options>.*?)function (?<name>\w+)/gm;

function readMigrations(folder: string): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  const migrations = files.sort().map((file, index) => {
    const { digits, name } = MIGRATION_FILE.exec(file)?.groups ?? {};
    const version = index + 1;
    if (name === undefined || Number(digits) !== version)
      throw new Error(`sql/${file}: expected number ${version} as NNNN-name.sql`);
    const text = readFileSync(`${folder}/${file}`, 'utf8');
    return { version, name, worksWith: readWorksWith(file, version, text), text };
  });
  migrations.forEach(({ version, worksWith }, index) => {
    if (worksWith < (migrations[index - 1]?.worksWith ?? 0))
      throw new Error(
        `sql: migration ${version} has works-with ${worksWith}, which is less than that of migration ${version - 1}`,
      );
  });
  return migrations;
}

function readWorksWith(file: string, version: number, text: string): number {
  // If the line is missing, `worksWith` is NaN, and the comparison is false.
  const worksWith = Number(WORKS_WITH_LINE.exec(text)?.groups?.version);
  if (worksWith <= version) return worksWith;
  throw new Error(
    `sql/${file}: expected a first line \`-- works-with: N\`, the oldest version whose code works with it`,
  );
}

function readFunctions(folder: string): SqlFunction[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file) => {
    const name = file.slice(0, -'.sql'.length).replaceAll('-', '_');
    const text = readFileSync(`${folder}/${file}`, 'utf8');
    const created = [...text.matchAll(CREATE_FUNCTION)].map(
      ({ groups }) => `${groups?.options}${groups?.name}`,
    );
    if (created.length !== 1 || created[0] !== `or replace ${name}`)
      throw new Error(`sql/functions/${file}: expected one \`create or replace function ${name}\``);
    return { name, text };
  });
}
