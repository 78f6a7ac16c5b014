import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { migrate } from '../src/store/schema/migrations.ts';
import { runOn } from './support/database.ts';
import { makeFolder } from './support/folders.ts';
import { provide } from './support/programs.ts';
import { runDir } from './support/run.ts';
import { startSystemPostgres } from './support/system-postgres.ts';

/** Runs the script of the CronJob in `k8s/backups/` against a real Postgres, with the role that the CronJob uses. */

const K8S = join(import.meta.dirname, '../k8s');
const SCHEDULED = join(K8S, 'backups/scheduled.sh');

const OLDEST = 'bookmarks-20200101T000000Z.dump';
const OLDER = 'bookmarks-20200102T000000Z.dump';

beforeAll(() => provide('postgresql'));

test('a scheduled backup is made by the reading role and verified, and the oldest ones are removed', async () => {
  await using postgres = await startSystemPostgres();
  const owner = await postgres.createDatabase('source');
  const as = (username: string) => Object.assign(new URL(owner), { username }).href;
  await runOn(as('postgres'), 'alter role bookmarks_backup login');
  await runOn(owner, readFileSync(join(K8S, 'database/roles.sql'), 'utf8'));
  // roles.sql ran before any table existed. The rights that it grants also cover the tables that migrations create
  // afterwards.
  await migrate({ url: owner });
  await runOn(
    owner,
    "insert into invites (code, email, email_key, expires_at) values ('ABCDEFGH', 'ann@example.org', 'ann@example.org', now())",
  );
  const reader = as('bookmarks_backup');
  await expect(runOn(reader, 'delete from invites')).rejects.toThrow(/permission denied/);
  await expect(runOn(reader, "select nextval('bookmarks_id_seq')")).rejects.toThrow();

  const folder = makeFolder('backups', runDir());
  for (const name of [OLDEST, OLDER, `${OLDER}.part`]) writeFileSync(join(folder, name), '');
  await postgres.runScript(SCHEDULED, reader, [folder, '2']);
  const kept = readdirSync(folder).sort();
  expect(kept).toEqual([OLDER, expect.stringMatching(/^bookmarks-20\d{6}T\d{6}Z\.dump$/)]);

  const restored = await postgres.createDatabase('restored');
  const said = await postgres.runScript(join(K8S, 'restore.sh'), restored, [join(folder, kept[1]!)]);
  expect(said).toMatch(/users +\| 0\n(.*\n)*unchecked_constraints \| 0\ninvalid_indexes +\| 0\n/);
  expect(await runOn(restored, 'select email from invites')).toEqual([{ email: 'ann@example.org' }]);

  // With several jobs, a dump is a folder. The name of a dump is the second in which the dump was made. The test
  // renames the earlier dump, because the next dump could be made in the same second.
  renameSync(join(folder, kept[1]!), join(folder, OLDEST));
  const jobs = { JOBS: '2' };
  await postgres.runScript(SCHEDULED, reader, [folder, '1'], jobs);
  const [parallel] = readdirSync(folder);
  const copy = await postgres.createDatabase('copy');
  await postgres.runScript(join(K8S, 'restore.sh'), copy, [join(folder, parallel!)], jobs);
  expect(await runOn(copy, 'select email from invites')).toEqual([{ email: 'ann@example.org' }]);
  kept.splice(0, kept.length, parallel!);

  // A failed backup removes nothing, and leaves nothing that looks complete.
  await postgres.dropDatabase('source');
  await expect(postgres.runScript(SCHEDULED, reader, [folder, '1'])).rejects.toThrow('does not exist');
  expect(
    readdirSync(folder)
      .filter((name) => name.endsWith('.dump'))
      .sort(),
  ).toEqual(kept);
});
