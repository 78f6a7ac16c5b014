// biome-ignore-all lint/suspicious/noTemplateCurlyInString: code within texts
import { describe, expect, test } from 'vitest';
import { findBreaches } from './layers/rules.ts';

// Tests the rules of our own that `npm run check` enforces. biome and knip enforce the others.

describe('reading the environment', () => {
  test.each([
    'export const url = process.env.URL;',
    "export const url = process['env'].URL;",
    'export const url = process?.env.URL;',
    'export const { env } = process;',
    'export const { env: given } = process;',
    'export const { pid, ...rest } = process;',
    'export const url = globalThis.process.env.URL;',
    "import { env } from 'node:process';",
    "import node from 'node:process';",
    "export * from 'process';",
    "export const load = () => import('node:process');",
    'export const node = process;',
    'start(process);',
    "const name = 'env'; export const all = process[name];",
  ])('is not allowed in imports: %s', (code) => {
    expect(findBreaches('src/imports/a.ts', code)).toEqual([expect.stringContaining('environment')]);
  });

  test('is allowed in two files, and other uses of process are allowed everywhere', () => {
    const code =
      'const { pid } = process;\nprocess.on(`exit`, () => {});\nexport const job = { process: pid }.process;';
    expect(findBreaches('src/imports/a.ts', code)).toEqual([]);
    expect(findBreaches('src/config.ts', 'export const read = (env = process.env) => env;')).toEqual([]);
  });
});

describe('SQL', () => {
  test.each([
    'db.read((sql) => sql`and id > ${1}`);',
    'context.database.sql`${text}`;',
    "pool.unsafe('SELECT 1');",
    'pool.unsafe(text);',
    "export const text = 'select id from users';",
    'export const text = `\n  with gone as (delete from tokens where id = 1) select 1`;',
    'export const text = `insert into users (email) values (1)`;',
    "export const text = 'update accounts set is_premium = true';",
    "export const text = 'delete from users';",
    "export const text = 'create unique index one on users (email)';",
    "export const text = 'TRUNCATE users';",
  ])('is not allowed outside of the store: %s', (code) => {
    expect(findBreaches('src/imports/a.ts', code)).not.toEqual([]);
    expect(findBreaches('src/store/a.ts', code)).toEqual([]);
  });

  test.each([
    'Select a file to import.',
    'delete a user with all that is theirs',
    'update',
    'begin where the last run ended, with a file',
    '/tags/update',
  ])('is not recognized in the text %j', (text) => {
    expect(findBreaches('src/imports/a.ts', `export const text = ${JSON.stringify(text)};`)).toEqual([]);
  });
});

test('a file that cannot be parsed as TypeScript is an error', () => {
  expect(() => findBreaches('src/imports/a.ts', 'import {')).toThrow('src/imports/a.ts');
});
