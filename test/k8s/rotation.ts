import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { runPgBouncer } from '../support/pgbouncer.ts';
import { provide } from '../support/programs.ts';
import { runOn, withDatabase } from '../support/run-on.ts';
import { startSystemPostgres } from '../support/system-postgres.ts';
import { until } from '../support/until.ts';

/**
 * Runs `k8s/rotate.sh` on real Postgres servers that require passwords, with a real PgBouncer in front of them. A
 * substitute script replaces kubectl and the pods, and keeps Secrets in files. While a Deployment rolls out, the
 * substitute connects to each server as the pods would.
 */

const K8S = join(import.meta.dirname, '../../k8s');
const ADMINISTRATOR = join(K8S, 'database/administrator.sql');

/** The exit code and all output of one run of the script. */
interface Ran {
  code: number;
  output: string;
}

/** A prepared rotation of passwords, on one server or on the nodes of a Citus cluster. */
export interface Rotation {
  folder: string;
  programs: string;
  /** The database's url on each node, for the superuser. The first url is the one on the coordinator. */
  nodes: string[];
  /** Runs the script with `admin` as the administrator's url, and with `path` as its PATH. Both have defaults. */
  run(given?: { admin?: string; path?: string }): Promise<Ran>;
  /** Returns the roles with which the pods reached the nodes, for each roll-out since the previous `takeSeen`. */
  takeSeen(): string[];
  /** Returns the roles with which the pods reach the nodes now, and each word of any error message. */
  reach(): Promise<string[]>;
  readSecret(key: string): string;
  /**
   * Sets shell lines that run before each kubectl call and get its arguments. If one of the lines fails, the kubectl
   * call fails.
   */
  before(lines: string): void;
  /** Returns for each node whether a role can log in with a password. */
  logIn(role: string, password: string): Promise<boolean[]>;
}

/**
 * Returns a script that replaces kubectl. A restart of the Deployment `pgbouncer` makes PgBouncer reload its users and
 * open new connections. After a restart of any other Deployment, its pods use the url that the Secret contains.
 */
const describeKubectl = (folder: string, pooler: string, nodes: number) => `#!/usr/bin/env bash
set -eu
shift 2
folder='${folder}'
reach() {
  sort -u "$folder/api-url" "$folder/worker-url" | while read -r url; do
    for node in $(seq ${nodes}); do
      psql -Atc 'select current_user' "\${url%/*}/node_$node" 2>&1
    done
  done | sort -u | xargs
}
if [ -e "$folder/before" ]; then bash -eu "$folder/before" "$@"; fi
case "$1 $2" in
  'get secret') key=$(sed 's/.*data "\\([^"]*\\)".*/\\1/' <<<"$5"); cat "$folder/$3/$key" ;;
  'patch secret') node -e '
    const fs = require("node:fs");
    for (const [key, text] of Object.entries(JSON.parse(fs.readFileSync(process.argv[2])).data))
      fs.writeFileSync("${folder}/" + process.argv[1] + "/" + key, Buffer.from(text, "base64"));
  ' "$3" "$5" ;;
  'rollout restart')
    case "$3" in
      deployment/pgbouncer) psql -qc reload -c reconnect '${pooler}' >/dev/null 2>&1 ;;
      *) cp "$folder/connections/DATABASE_URL" "$folder/\${3#*/}-url" ;;
    esac ;;
  'rollout status') echo "$3 $(reach)" >>"$folder/seen" ;;
  reach*) reach ;;
esac
`;

/** Makes a server require a password for every connection, except for connections of administrators. */
async function requirePasswords(superuser: string): Promise<void> {
  await runOn(
    superuser,
    `do $$
    begin
      execute format($copy$copy (
        values ('host all postgres,provider 127.0.0.1/32 trust'), ('host all all 127.0.0.1/32 scram-sha-256')
      ) to %L$copy$, current_setting('hba_file'));
    end
    $$`,
  );
  await runOn(superuser, 'select pg_reload_conf()');
  const asNobody = Object.assign(new URL(superuser), { username: 'nobody' }).href;
  await until(() =>
    runOn(asNobody, 'select 1').then(
      () => false,
      ({ code }) => code === '28P01',
    ),
  );
}

/** Runs `administrator.sql` on a server as a provider's administrator, who is not a superuser. */
export async function administer(superuser: string, password: string): Promise<void> {
  const programs = dirname(await provide('postgresql'));
  const provider = Object.assign(new URL(superuser), { username: 'provider', pathname: '/postgres' });
  const passwords = { OWNER_PASSWORD: password, SERVING_PASSWORD: password };
  const args = [
    '--no-psqlrc',
    '--set=ON_ERROR_STOP=1',
    `--dbname=${provider.href}`,
    `--file=${ADMINISTRATOR}`,
  ];
  await promisify(execFile)(join(programs, 'psql'), args, { env: { ...process.env, ...passwords } });
}

/** Starts a server and runs `administrator.sql` on it. Returns the database's url for the superuser. */
export async function startServer(servers: AsyncDisposableStack): Promise<string> {
  const postgres = servers.use(await startSystemPostgres());
  const superuser = await postgres.createDatabase('empty', 'postgres');
  await runOn(
    superuser,
    'drop role bookmarks_serving; drop role bookmarks_backup; create role provider login createrole createdb',
  );
  // The second run must change nothing, not even a password.
  for (const password of ['first', 'second']) await administer(superuser, password);
  await requirePasswords(superuser);
  return withDatabase(superuser, 'bookmarks');
}

/** Resets the roles to their state after the first run of `administrator.sql`. */
const FIRST_ROLES = `
  alter role bookmarks_a login password 'first' connection limit -1;
  alter role bookmarks_b nologin password null connection limit -1`;

/** Starts PgBouncer for these servers until the test ends. At first, the imitated pods connect as `bookmarks_a`. */
export async function startRotation(nodes: string[]): Promise<Rotation> {
  const programs = dirname(await provide('postgresql'));
  const count = nodes.length;
  for (const url of nodes) await runOn(url, FIRST_ROLES);
  const folder = makeFolder('rotate');
  onTestFinished(() => removeFolder(folder));
  for (const secret of ['connections', 'pgbouncer']) mkdirSync(join(folder, secret));
  const userlist = join(folder, 'pgbouncer/userlist.txt');
  writeFileSync(userlist, '"bookmarks_a" "first"\n"metrics" "stats"\n');
  const port = await runPgBouncer((listenPort) => describePooler(nodes, listenPort, userlist));
  const urlOf = (role: string, password: string, database: string) =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  const serving = urlOf('bookmarks_a', 'first', 'bookmarks');
  for (const file of ['connections/DATABASE_URL', 'api-url', 'worker-url'])
    writeFileSync(join(folder, file), serving);
  writeFileSync(join(folder, 'connections/DATABASE_IMPORT_URL'), `${serving}_import`);
  writeFileSync(join(folder, 'connections/MIGRATE_DATABASE_URL'), `${nodes[0]!}?sslmode=prefer`);
  const kubectl = join(folder, 'kubectl');
  writeFileSync(kubectl, describeKubectl(folder, urlOf('metrics', 'stats', 'pgbouncer'), count));
  chmodSync(kubectl, 0o755);
  const path = `${folder}:${programs}:${process.env.PATH}`;
  const seen = join(folder, 'seen');
  return {
    folder,
    programs,
    nodes,
    run: (given) => runScript(given?.path ?? path, given?.admin ?? nodes[0]!),
    takeSeen: () => {
      const lines = existsSync(seen) ? readFileSync(seen, 'utf8').trim().split('\n') : [];
      writeFileSync(seen, '');
      return lines.filter(Boolean);
    },
    reach: async () => {
      const env = { ...process.env, PATH: path };
      const { stdout } = await promisify(execFile)(kubectl, ['', '', 'reach', 'all'], { env });
      return stdout.trim().split(' ');
    },
    readSecret: (key) => readFileSync(join(folder, key), 'utf8'),
    before: (lines) => writeFileSync(join(folder, 'before'), lines),
    logIn: (role, password) => Promise.all(nodes.map((url) => canLogIn(url, role, password))),
  };
}

function describePooler(nodes: readonly string[], listenPort: number, userlist: string): string {
  const lines = nodes.map(
    (url, n) =>
      `node_${n + 1} = host=127.0.0.1 port=${new URL(url).port} dbname=${new URL(url).pathname.slice(1)}`,
  );
  return `[databases]
${lines.join('\n')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${userlist}
admin_users = metrics
pool_mode = transaction
server_login_retry = 0
`;
}

function runScript(path: string, admin: string): Promise<Ran> {
  const env = { ...process.env, PATH: path, ADMIN_DATABASE_URL: admin };
  return new Promise((done) =>
    execFile('bash', [join(K8S, 'rotate.sh')], { env }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code ?? 1) : 0, output: stdout + stderr }),
    ),
  );
}

const canLogIn = (url: string, username: string, password: string): Promise<boolean> =>
  runOn(Object.assign(new URL(url), { username, password }).href, 'select 1').then(
    () => true,
    () => false,
  );
