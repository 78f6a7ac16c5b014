import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { migrate } from '../../src/store/schema/migrations.ts';
import { readSchemaFiles } from '../../src/store/schema/schema-files.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { silentLog } from '../support/silent-log.ts';
import { recordService } from './calls.ts';
import { RELEASE_FILE, type ReleaseBefore } from './release.ts';

/**
 * `node test/release-before/record.ts 1.0.0` records what a release requires of its database: its schema, and every
 * statement that it sends. The tests of the next release replay the statements on the newer schema. Run this program
 * for each release, with the release's name.
 */

const [release] = process.argv.slice(2);
if (release === undefined) throw new Error('usage: node test/release-before/record.ts RELEASE');
const folder = makeFolder('release-before');
const server = await openEmbeddedPostgres({ dataDir: join(folder, 'postgres'), log: silentLog });
try {
  await migrate({ url: server.url, log: silentLog });
  const calls = await recordService(server.url);
  const recorded: ReleaseBefore = { release, schema: readSchemaFiles(), calls };
  writeFileSync(RELEASE_FILE, `${JSON.stringify(recorded, undefined, 1)}\n`);
} finally {
  await server.stop();
  removeFolder(folder);
}
