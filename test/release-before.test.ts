import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { checkSchema, migrate } from '../src/store/schema/migrations.ts';
import { readSchemaFiles, type SchemaFiles } from '../src/store/schema/schema-files.ts';
import { recordService } from './release-before/calls.ts';
import { readRelease, replay } from './release-before/release.ts';
import { createDatabase, runOn, withDatabase } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { findFaults } from './support/invariants.ts';

/**
 * During a roll-out, replicas of the previous release use the newer schema and its functions.
 * `release-before/record.ts` recorded the statements of that release when it was released, and these tests replay them.
 * Before the first release, there is no recording, so the tests that replay it are skipped.
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
const ofPrevious = before
  ? 'the previous release'
  : 'the previous release (skipped: no release is recorded yet)';

describe.skipIf(before === undefined)(ofPrevious, () => {
  const { schema, calls } = before ?? { schema: readSchemaFiles(), calls: [] };
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
