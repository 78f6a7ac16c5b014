import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { runOn } from './support/database.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { runPgBouncer } from './support/pgbouncer.ts';
import { provide } from './support/programs.ts';
import { startSystemPostgres } from './support/system-postgres.ts';

/**
 * `k8s/rotate.sh` against a real Postgres and a real PgBouncer. The cluster is played by a script: Secrets are files, and
 * while a Deployment rolls both the old and the new way to the database are tried, as its pods do. The administrator is a
 * provider's: no superuser, and what `k8s/database/administrator.sql` has it run is all that it has of the roles.
 */

const SCRIPT = join(import.meta.dirname, '../k8s/rotate.sh');
const ADMINISTRATOR = join(import.meta.dirname, '../k8s/database/administrator.sql');

/** PgBouncer reads its users again; of a Deployment that has rolled, its url must work through PgBouncer. */
const describeKubectl = (folder: string, admin: string) => `#!/usr/bin/env bash
set -eu
shift 2
case "$1 $2" in
  'get secret') key=$(sed 's/.*data "\\([^"]*\\)".*/\\1/' <<<"$5"); cat "${folder}/$3/$key" ;;
  'patch secret') node -e '
    const fs = require("node:fs");
    for (const [key, text] of Object.entries(JSON.parse(process.argv[2]).data))
      fs.writeFileSync("${folder}/" + process.argv[1] + "/" + key, Buffer.from(text, "base64"));
  ' "$3" "$5" ;;
  'rollout restart') if [ "$3" = deployment/pgbouncer ]; then psql -qc reload '${admin}' >/dev/null 2>&1; else cp "${folder}/connections/DATABASE_URL" "${folder}/pods-url"; fi ;;
  'rollout status') echo "$3 $(psql -Atc 'select current_user' "$(cat "${folder}/pods-url")" 2>&1)" >> ${folder}/seen ;;
esac
`;

/** Runs `k8s/database/administrator.sql`, with one password for both roles. */
async function administer(programs: string, url: string, password: string): Promise<void> {
  const passwords = { OWNER_PASSWORD: password, SERVING_PASSWORD: password };
  const args = ['--no-psqlrc', '--set=ON_ERROR_STOP=1', `--dbname=${url}`, `--file=${ADMINISTRATOR}`];
  await promisify(execFile)(join(programs, 'psql'), args, { env: { ...process.env, ...passwords } });
}

beforeAll(() => provide('postgresql'), 300_000);

test('a rotation changes the role while the service can work at every moment, and ends the old one', {
  timeout: 90_000,
}, async () => {
  await using postgres = await startSystemPostgres();
  const folder = makeFolder('rotate');
  onTestFinished(() => removeFolder(folder));
  const superuser = new URL(await postgres.createDatabase('empty', 'postgres'));
  await runOn(
    superuser.href,
    'drop role bookmarks_serving; drop role bookmarks_backup; create role provider login createrole createdb',
  );
  const admin = Object.assign(new URL(superuser), { username: 'provider', pathname: '/postgres' }).href;
  const programs = dirname(await provide('postgresql'));
  // Once more changes nothing: no password either.
  for (const password of ['first', 'second']) await administer(programs, admin, password);
  for (const secret of ['connections', 'pgbouncer']) mkdirSync(join(folder, secret));
  const userlist = join(folder, 'pgbouncer/userlist.txt');
  writeFileSync(userlist, '"bookmarks_a" "first"\n"metrics" "stats"\n');
  const port = await runPgBouncer(
    (listenPort) => `[databases]
bookmarks = host=127.0.0.1 port=${superuser.port} dbname=bookmarks
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${userlist}
admin_users = metrics
pool_mode = transaction
`,
  );
  const urlOf = (role: string, password: string, database = 'bookmarks') =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  for (const file of ['connections/DATABASE_URL', 'connections/DATABASE_IMPORT_URL', 'pods-url'])
    writeFileSync(join(folder, file), urlOf('bookmarks_a', 'first'));
  writeFileSync(join(folder, 'kubectl'), describeKubectl(folder, urlOf('metrics', 'stats', 'pgbouncer')));
  chmodSync(join(folder, 'kubectl'), 0o755);

  const rotate = () =>
    promisify(execFile)('bash', [SCRIPT], {
      env: { ...process.env, PATH: `${folder}:${programs}:${process.env.PATH}`, ADMIN_DATABASE_URL: admin },
    });
  await rotate();
  // PgBouncer, the pods, PgBouncer again: the url of the pods works each time.
  expect(readFileSync(join(folder, 'seen'), 'utf8').trim().split('\n')).toEqual([
    'deployment/pgbouncer bookmarks_a',
    'deployment/api bookmarks_b',
    'deployment/worker bookmarks_b',
    'deployment/pgbouncer bookmarks_b',
  ]);
  expect(readFileSync(userlist, 'utf8')).not.toContain('bookmarks_a');
  expect(readFileSync(join(folder, 'connections/DATABASE_IMPORT_URL'), 'utf8')).toContain('//bookmarks_b:');
  const [roles] = await runOn(
    admin,
    `select string_agg(rolname, ' ' order by rolname) as login from pg_roles where rolcanlogin and rolname like 'bookmarks\\__'`,
  );
  expect(roles).toMatchObject({ login: 'bookmarks_b' });

  // And back again, with another password.
  const before = readFileSync(join(folder, 'connections/DATABASE_URL'), 'utf8');
  await rotate();
  const after = readFileSync(join(folder, 'connections/DATABASE_URL'), 'utf8');
  expect([before.includes('//bookmarks_b:'), after.includes('//bookmarks_a:')]).toEqual([true, true]);
  expect(after).not.toContain('first');
});
