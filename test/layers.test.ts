// biome-ignore-all lint/suspicious/noTemplateCurlyInString: code within texts
import { describe, expect, test } from 'vitest';
import { findBreaches, findUnusedExports } from './layers/rules.ts';

// Tests the rules for src/ that `npm run check` enforces (CONTRIBUTING.md, docs/design.md). Each rule is tested with
// many forms of code that violates it.

const LONG = '\n//'.repeat(20);

/** Returns the violations in these files, given by path. Adds lines, so that no file is too short. */
const check = (files: Record<string, string>) =>
  findBreaches(new Map(Object.entries(files).map(([path, code]) => [path, code + LONG])));

/** Returns the violations in one file. The two other files are there so that this file can import them. */
const checkFile = (path: string, code: string) =>
  check({
    'src/http/app.ts': 'export const app = 1;',
    'src/domain/text.ts': 'export const fold = 1; export type Folded = string;',
    [path]: code,
  });

describe('import cycles', () => {
  test.each([
    ['an imported value', "import { b } from './b.ts';"],
    ['an imported type', "import type { B } from './b.ts';"],
    ['a type in an import of values', "import { type B } from './b.ts';"],
    ['an import within a type', "export type A = import('./b.ts').B;"],
    ['an import without names', "import './b.ts';"],
    ['a re-exported value', "export { b } from './b.ts';"],
    ['a re-exported type', "export type { B } from './b.ts';"],
    ['a re-export of everything', "export * from './b.ts';"],
    ['a re-exported namespace', "export * as all from './b.ts';"],
    ['a dynamic import', "export const load = async () => (await import('./b.ts')).b;"],
    ['a dynamic import with a template', 'export const load = () => import(`./b.ts`);'],
    ['an import by the alias of src', "import { b } from '#src/domain/b.ts';"],
    ['an import with "import ="', "import b = require('./b.ts');"],
  ])('%s closes a cycle', (_what, code) => {
    const found = check({
      'src/domain/a.ts': code,
      'src/domain/b.ts': "import type { C } from './c.ts';\nexport type B = C;",
      'src/domain/c.ts': "import type { A } from './a.ts';\nexport type C = A;",
    });
    expect(found).toEqual([
      'import cycle: src/domain/a.ts -> src/domain/b.ts -> src/domain/c.ts -> src/domain/a.ts',
    ]);
  });

  test('an import of the file itself is a cycle', () => {
    expect(check({ 'src/domain/a.ts': "import type { A } from './a.ts';" })).toHaveLength(1);
  });

  test('two paths to the same file are not a cycle', () => {
    const found = check({
      'src/domain/a.ts': "import './b.ts';\nimport './c.ts';",
      'src/domain/b.ts': "import './c.ts';",
      'src/domain/c.ts': 'export {};',
    });
    expect(found).toEqual([]);
  });

  test('test files may not have cycles either', () => {
    const found = check({ 'test/a.ts': "import './b.ts';", 'test/b.ts': "import './a.ts';" });
    expect(found).toHaveLength(1);
  });
});

describe('layers', () => {
  test.each([
    ['src/store/a.ts', "import type { app } from '../http/app.ts';"],
    ['src/store/a.ts', "export * from '../http/app.ts';"],
    ['src/store/patches/a.ts', "import '../../http/app.ts';"],
    ['src/coordination/a.ts', "export const load = () => import('../http/app.ts');"],
    ['src/domain/a.ts', "export type App = typeof import('../http/app.ts').app;"],
    ['src/domain/a.ts', "import { app } from '#src/http/app.ts';"],
    ['src/domain/a.ts', "export const url = new URL('../http/app.ts', import.meta.url);"],
    ['src/domain/a.ts', "import { app } from '../../src/http/app.ts';"],
    ['src/domain/a.ts', "import { help } from '../../test/support/help.ts';"],
    ['src/operations/deep/a.ts', "import type { app } from '../../http/app.ts';"],
    ['src/http/health.ts', "import { routes } from '../routes/account.ts';"],
    ['src/client/a.ts', "import type { Database } from '../store/database.ts';"],
    ['src/config.ts', "import { pool } from './store/pool.ts';"],
    ['src/domain/a.ts', '/// <reference path="../http/app.ts" />'],
    ['src/domain/a.ts', "import routes from '../http/routes.json' with { type: 'json' };"],
    ['src/domain/a.ts', "import { app } from '/srv/src/http/app.ts';"],
    ['src/domain/a.ts', "import { app } from 'file:///srv/src/http/app.ts';"],
  ])('a file such as %s may not contain: %s', (path, code) => {
    expect(checkFile(path, code)).toEqual([expect.stringMatching(/^src\/.+:1: .+ may not import /)]);
  });

  test('a new layer needs its own rules', () => {
    expect(checkFile('src/helpers/a.ts', '')).toEqual([expect.stringContaining('belongs to no layer')]);
  });

  test('a layer may import what its rules allow', () => {
    const code = "import type { Folded } from '../domain/text.ts';\nexport * from './b.ts';";
    expect(checkFile('src/store/a.ts', code)).toEqual([]);
  });
});

describe('packages', () => {
  test.each([
    "import { Redis } from 'ioredis';",
    "import type { Redis } from 'ioredis';",
    "import 'bullmq';",
    "export { Queue } from 'bullmq';",
    "export const load = () => import('bullmq');",
    "export type Client = import('ioredis').Redis;",
    "import Redis from 'ioredis/built/Redis.js';",
    "export const path = import.meta.resolve('ioredis');",
    "import { createRequire } from 'node:module';",
    "import type { FastifyRequest } from 'fastify';",
    "import postgres from 'postgres';",
    "import redis = require('ioredis');",
    '/// <reference types="ioredis" />',
    "import { BookmarkClient } from 'bookmark-service/client';",
  ])('operations may not contain: %s', (code) => {
    expect(checkFile('src/operations/a.ts', code)).toEqual([
      expect.stringMatching(/:1: only .+ may import /),
    ]);
  });

  test("a string that equals a package's name is not an import", () => {
    expect(checkFile('src/embedded/a.ts', "spawn('postgres', []);\nexport const user = 'postgres';")).toEqual(
      [],
    );
  });
});

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
  ])('is not allowed in operations: %s', (code) => {
    expect(checkFile('src/operations/a.ts', code)).toEqual([expect.stringContaining('environment')]);
  });

  test('is allowed in two files, and other uses of process are allowed everywhere', () => {
    const code =
      'const { pid } = process;\nprocess.on(`exit`, () => {});\nexport const job = { process: pid }.process;';
    expect(checkFile('src/operations/a.ts', code)).toEqual([]);
    expect(checkFile('src/config.ts', 'export const read = (env = process.env) => env;')).toEqual([]);
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
    expect(checkFile('src/operations/a.ts', code)).not.toEqual([]);
    expect(checkFile('src/store/a.ts', code)).toEqual([]);
  });

  test.each([
    'Select a file to import.',
    'delete a user with all that is theirs',
    'update',
    'begin where the last run ended, with a file',
    '/tags/update',
  ])('is not recognized in the text %j', (text) => {
    expect(checkFile('src/operations/a.ts', `export const text = ${JSON.stringify(text)};`)).toEqual([]);
  });
});

describe('names in Redis', () => {
  test.each([
    "client.get('bookmarks:limit');",
    'client.get(`${prefix}:limit:${key}`);',
    "client.publish('user:wakes', '1');",
    'client.get(`{${prefix}}imports`);',
  ])('are allowed in one file only: %s', (code) => {
    expect(checkFile('src/coordination/a.ts', code)).toEqual([
      expect.stringContaining('names what is in Redis'),
    ]);
    expect(checkFile('src/coordination/keys.ts', code)).toEqual([]);
  });

  test('messages, times and urls are not names in Redis', () => {
    const code =
      "log('degraded: Redis is away');\nexport const at = 'rediss://host';\nfail(`${name}: ${message}`);";
    expect(checkFile('src/coordination/a.ts', code)).toEqual([]);
  });
});

test('a short file must be shared by several layers, or be merged with another file', () => {
  const short = (path: string) => findBreaches(new Map([[path, 'export const one = 1;\n']]));
  expect(short('src/store/health.ts')).toEqual([expect.stringContaining('less than 20 lines')]);
  expect(short('src/coordination/channels.ts')).toEqual([]);
});

test('an import with a computed module name is refused', () => {
  expect(checkFile('src/operations/a.ts', 'export const load = (name: string) => import(name);')).toEqual([
    expect.stringContaining('must be a string'),
  ]);
});

test('a file that cannot be parsed as TypeScript is an error', () => {
  expect(() => checkFile('src/operations/a.ts', 'import {')).toThrow('src/operations/a.ts');
});

test('an export that no other file uses is reported', () => {
  const files = {
    'src/store/a.ts': 'export const used = 1;\nexport function unused() {}',
    'test/b.ts': 'used',
  };
  expect(findUnusedExports(new Map(Object.entries(files)))).toEqual([
    'src/store/a.ts: nothing else uses unused, so it need not be exported',
  ]);
});
