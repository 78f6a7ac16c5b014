import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { expect, inject, onTestFinished, test } from 'vitest';
import { checkSchema, migrate } from '../src/store/migrations.ts';
import { readSchemaFiles, type SchemaFiles } from '../src/store/schema-files.ts';
import { type RecordedCall, readRelease, SeenRows } from './release-before/release.ts';
import { createDatabase, runOn, withDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { findFaults } from './support/invariants.ts';

/**
 * While a release is rolled out, replicas of the one before go on working with the newer schema and its functions. What
 * they send was recorded when they were released (`release-before/record.ts`).
 */

const { release, schema, calls } = readRelease();
const isReleased = release !== 'unreleased';
const present = readSchemaFiles();

const tablesOf = ({ migrations }: SchemaFiles) => migrations.map(({ name, text }) => ({ name, text }));

/** Before the first release tables may be edited in place; there is then nothing to upgrade from. */
const isEditedInPlace =
  JSON.stringify(tablesOf(present).slice(0, schema.migrations.length)) !== JSON.stringify(tablesOf(schema));

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

/** Sends what the release before sent; each call must do what it did: no error, no refusal, as many rows. */
async function play(
  url: string,
  recorded: readonly RecordedCall[],
  seen = new SeenRows(),
): Promise<SeenRows> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    for (const { query, values, rows } of recorded) {
      const given = values.map((value) => seen.decode(value));
      const found = await sql.unsafe(query, given as never[], { prepare: true });
      expect(found.length, query).toBe(rows);
      for (const row of found)
        expect(String(row.outcome), query).not.toMatch(/token|missing|limit|over|busy|full/);
      seen.add(found);
    }
    return seen;
  } finally {
    await sql.end();
  }
}

test('what the release before sends works with the present schema', async () => {
  const url = await createEmpty();
  await migrate({ url });
  await play(url, calls);
  expect(await findFaults(url)).toEqual([]);
});

test.for(isReleased || !isEditedInPlace ? [0.3, 0.6, 0.9] : [])(
  'a schema of the release before is brought to the present one amid its replicas: after %f of their calls',
  async (share) => {
    const url = await createEmpty();
    const folder = writeSchema(schema);
    const before = Math.floor(calls.length * share);
    await migrate({ url, folder });
    const seen = await play(url, calls.slice(0, before));
    await migrate({ url });
    // Its own `migrate`, of a pod that starts late, does nothing to a newer schema, and it starts.
    if (present.migrations.length > schema.migrations.length)
      expect(await migrate({ url, folder })).toEqual([]);
    await check(url, folder);
    await play(url, calls.slice(before), seen);
    expect(await findFaults(url)).toEqual([]);
  },
);

async function check(url: string, folder: string): Promise<void> {
  const sql = postgres(url, { max: 1 });
  try {
    await checkSchema(sql as never, folder);
  } finally {
    await sql.end();
  }
}

if (isReleased) {
  test('a released migration is never edited', () => {
    expect(tablesOf(present).slice(0, schema.migrations.length)).toEqual(tablesOf(schema));
  });

  test('functions that changed since the release come with a numbered migration', () => {
    if (present.migrations.length > schema.migrations.length) return;
    expect(present.functions).toEqual(schema.functions);
  });
}
