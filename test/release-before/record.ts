import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { openEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { migrate } from '../../src/store/migrations.ts';
import { readSchemaFiles } from '../../src/store/schema-files.ts';

import { makeFolder, removeFolder } from '../support/folders.ts';
import { silentLog } from '../support/silent-log.ts';
import { playAll } from './calls.ts';
import { RELEASE_FILE, type RecordedCall, type ReleaseBefore, SeenRows } from './release.ts';

/**
 * `node test/release-before/record.ts [RELEASE]`: writes down what this release expects of a database, its schema and
 * every statement that it sends, so that the tests of the next one can play it against the newer schema. To be run with
 * the release's name when it is released; before the first, without one, whenever functions change in a way that no
 * replica has to live through.
 */

async function recordCalls(url: string): Promise<RecordedCall[]> {
  const calls: RecordedCall[] = [];
  const seen = new SeenRows();
  let query = '';
  let values: unknown[] = [];
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    transform: { undefined: null },
    types: { int8: { to: 20, from: [20], parse: Number, serialize: String } },
    debug: (_, text, parameters) => {
      query = text;
      values = parameters;
    },
  });
  try {
    // Numbers of one kind are then never those of another, so that it is known where each came from.
    await sql`
      select setval('bookmarks_id_seq', 4e15::bigint), setval('tags_id_seq', 5e15::bigint),
        setval('users_id_seq', 3e15::bigint), setval('tokens_id_seq', 6e15::bigint)`;
    await playAll(async (run) => {
      const rows = await run(sql as never);
      calls.push({ query, values: values.map((value) => seen.encode(value)), rows: rows.length });
      seen.add(rows);
      return rows;
    });
  } finally {
    await sql.end();
  }
  return calls;
}

const folder = makeFolder('release-before');
const server = await openEmbeddedPostgres({ dataDir: join(folder, 'postgres'), log: silentLog });
try {
  await migrate({ url: server.url, log: silentLog });
  const [release = 'unreleased'] = process.argv.slice(2);
  const recorded: ReleaseBefore = {
    release,
    schema: readSchemaFiles(),
    calls: await recordCalls(server.url),
  };
  writeFileSync(RELEASE_FILE, `${JSON.stringify(recorded, undefined, 1)}\n`);
} finally {
  await server.stop();
  removeFolder(folder);
}
