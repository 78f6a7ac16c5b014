import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { checkSchema, migrate } from '../src/store/migrations.ts';
import { readSchemaFiles, type SchemaFiles } from '../src/store/schema-files.ts';
import { recordService } from './release-before/calls.ts';
import { readRelease, recordCalls, replay } from './release-before/release.ts';
import { createDatabase, runOn, withDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { findFaults } from './support/invariants.ts';

/**
 * During a roll-out, replicas of the previous release use the newer schema and its functions.
 * `release-before/record.ts` recorded the statements of that release when it was released, and these tests replay them.
 * Before the first release, there is no recording. A small made-up release shows that the tests notice a change that
 * breaks recorded statements.
 */

function writeSchema({ migrations, functions }: SchemaFiles): string {
  const folder = makeFolder('release-before');
  onTestFinished(() => removeFolder(folder));
  mkdirSync(join(folder, 'functions'));
  for (const { version, name, text } of migrations)
    writeFileSync(join(folder, `${String(version).padStart(4, '0')}-${name}.sql`), text);
  for (const { name, text } of functions)
    writeFileSync(join(folder, 'functions', `${name.replaceAll('_', '-')}.sql`), text);
  return folder;
}

async function createEmpty(): Promise<string> {
  const { name, drop } = await createDatabase();
  onTestFinished(drop);
  const server = inject('postgresUrl');
  await runOn(server, `drop database ${name}`);
  await runOn(server, `create database ${name}`);
  return withDatabase(server, name);
}

const addNote = (parameters: string, columns: string, values: string) => ({
  name: 'add_note',
  text: `create or replace function add_note(${parameters}) returns table (outcome text, id bigint)
language sql as $$ insert into notes (${columns}) values (${values}) returning 'added', notes.id $$;\n`,
});

const migration = (version: number, name: string, statement: string) => ({
  version,
  name,
  worksWith: 1,
  text: `-- works-with: 1\n${statement};\n`,
});

const MADE_UP: SchemaFiles = {
  migrations: [
    migration(1, 'notes', 'create table notes (id bigint generated always as identity, text text not null)'),
  ],
  functions: [addNote('p_text text', 'text', 'p_text')],
};

describe('a made-up release of two statements', () => {
  async function recordMadeUp() {
    const url = await createEmpty();
    await migrate({ url, folder: writeSchema(MADE_UP) });
    return recordCalls(url, async (send) => {
      await send((sql) => sql`select outcome, id from add_note(p_text => ${'first'})`);
      await send((sql) => sql`select text from notes where text = ${'first'}`);
    });
  }

  async function replayOn(next: SchemaFiles) {
    const url = await createEmpty();
    await migrate({ url, folder: writeSchema(MADE_UP) });
    const calls = await recordMadeUp();
    await migrate({ url, folder: writeSchema(next) });
    await replay(url, calls);
    return runOn(url, 'select * from notes');
  }

  test('works after a new column and a new argument with a default', async () => {
    const added = migration(2, 'color', `alter table notes add column color text not null default 'red'`);
    const dropped = migration(3, 'add-note', 'drop function add_note(text)');
    const next = {
      migrations: [...MADE_UP.migrations, added, dropped],
      functions: [addNote(`p_text text, p_color text default 'blue'`, 'text, color', 'p_text, p_color')],
    };
    expect(await replayOn(next)).toEqual([{ id: expect.anything(), text: 'first', color: 'blue' }]);
  });

  test.for([
    [
      'a renamed column',
      migration(2, 'body', 'alter table notes rename text to body'),
      'p_text text',
      'body',
    ],
    [
      'a new required argument',
      migration(2, 'more', 'drop function add_note(text)'),
      'p_text text, p_x int',
      'text',
    ],
    ['a change that makes a call fail', undefined, 'p_text text', 'text'],
  ] as const)('fails after %s', async ([, more, parameters, column]) => {
    const fn = addNote(parameters, column, 'p_text');
    const text = more === undefined ? fn.text.replace(`'added'`, `'over_limit'`) : fn.text;
    const migrations = [...MADE_UP.migrations, ...(more === undefined ? [] : [more])];
    await expect(replayOn({ migrations, functions: [{ ...fn, text }] })).rejects.toThrow();
  });
});

test('the statements of this release can be recorded and replayed', async () => {
  const recorded = await createEmpty();
  await migrate({ url: recorded });
  const calls = await recordService(recorded);
  const url = await createEmpty();
  await migrate({ url });
  await replay(url, calls);
  expect(await findFaults(url)).toEqual([]);
});

const before = readRelease();

if (before !== undefined)
  describe('the previous release', () => {
    const { schema, calls } = before;
    const present = readSchemaFiles();

    test.for([0, 0.3, 0.6, 0.9])('works when its schema is migrated after %f of its calls', async (share) => {
      const url = await createEmpty();
      const folder = writeSchema(schema);
      const done = Math.floor(calls.length * share);
      await migrate({ url, folder });
      const seen = await replay(url, calls.slice(0, done));
      await migrate({ url });
      // One pod of the previous release may start late and run its own `migrate`. That `migrate` does not change the
      // newer schema, and the pod starts.
      if (present.migrations.length > schema.migrations.length)
        expect(await migrate({ url, folder })).toEqual([]);
      const sql = postgres(url, { max: 1 });
      onTestFinished(() => sql.end());
      await checkSchema(sql as never, folder);
      await replay(url, calls.slice(done), seen);
      expect(await findFaults(url)).toEqual([]);
    });

    test('has migrations that were not edited since', () => {
      const count = schema.migrations.length;
      expect(present.migrations.slice(0, count)).toEqual(schema.migrations);
    });

    test('has functions that changed only together with a numbered migration', () => {
      if (present.migrations.length > schema.migrations.length) return;
      expect(present.functions).toEqual(schema.functions);
    });
  });
