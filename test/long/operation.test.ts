import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { buildKustomization, readObjects } from '../../k8s/check/kustomize.ts';
import type { KubernetesObject } from '../../k8s/check/objects.ts';
import { readEnvironment } from '../../k8s/check/rules/environment.ts';
import { listMountedFiles } from '../../k8s/check/rules/files.ts';
import { listWorkloads, type Workload } from '../../k8s/check/rules/rule.ts';
import { chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { commandsIn } from '../documents/commands.ts';
import { parseMarkdown } from '../documents/markdown.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { findFaults } from '../support/invariants.ts';
import {
  CA_FILE,
  type ManagedPostgres,
  startManagedPostgres,
  startManagedRedis,
  withoutVerification,
} from '../support/managed-servers.ts';
import { runPgBouncer } from '../support/pgbouncer.ts';
import { findFreePort } from '../support/ports.ts';
import { post } from '../support/post.ts';
import { provide } from '../support/programs.ts';
import { runMain, startReplica } from '../support/replica.ts';

/**
 * Does what docs/operation.md says, with its commands, on a Postgres and a Redis that require TLS and passwords.
 * Processes with the environment and the files of the production overlay replace the pods. `k8s-release.test.ts`,
 * `k8s-rotate.test.ts` and `rollout.test.ts` test what needs a cluster.
 */

const PROJECT = resolve(import.meta.dirname, '../..');

const COMMANDS: ReadonlySet<string> = new Set(
  ['docs/operation.md', 'docs/runbook.md'].flatMap((path) =>
    commandsIn(parseMarkdown(path, readFileSync(join(PROJECT, path), 'utf8'))),
  ),
);

/** Returns a command of the documents with values for its placeholders. Throws if no document has the command. */
function read(command: string, ...given: [placeholder: string, value: string][]): string {
  if (!COMMANDS.has(command)) throw new Error(`no document has the command ${command}`);
  return given.reduce((text, [placeholder, value]) => text.replace(placeholder, value), command);
}

const OWNER = 'ownerPassword';
const SERVING = 'servingPassword';
const BACKUP = 'backupPassword';
const REDIS = 'redisPassword';
const NEW = 'newPassword';

/** Returns the text of `secrets.yaml`: the example with passwords, hosts and the certificate authority. */
function fillInSecrets(example: string, ports: { postgres: number; redis: number; pooler: number }): string {
  const authority = readFileSync(CA_FILE, 'utf8').replace(/^(?=.)/gm, '    ');
  return example
    .replaceAll('bookmarks_a:PASSWORD', `bookmarks_a:${SERVING}`)
    .replaceAll('"bookmarks_a" "PASSWORD"', `"bookmarks_a" "${SERVING}"`)
    .replaceAll('bookmarks_owner:PASSWORD', `bookmarks_owner:${OWNER}`)
    .replaceAll('bookmarks_backup:PASSWORD', `bookmarks_backup:${BACKUP}`)
    .replaceAll('rediss://bookmarks:PASSWORD', `rediss://bookmarks:${REDIS}`)
    .replaceAll('PASSWORD', 'metricsPassword')
    .replaceAll('@pgbouncer:6432', `@127.0.0.1:${ports.pooler}`)
    .replaceAll('postgres.example.org:5432', `localhost:${ports.postgres}`)
    .replaceAll('redis.example.org:6379', `localhost:${ports.redis}`)
    .replace(/^ {2}# REDIS_CA_FILE/m, '  REDIS_CA_FILE')
    .replace(/ {2}# redis-ca.crt: \|\n.*\n.*\n/, `  redis-ca.crt: |\n${authority}`)
    .replace(/ {4}-----BEGIN CERTIFICATE-----\n {4}-----END CERTIFICATE-----\n/, authority);
}

/** An operator's checkout and shell. */
interface Operator {
  checkout: string;
  /** The variables of the shell. */
  variables: Record<string, string>;
  /** Runs a command line in the checkout. Returns its output. Rejects if its exit code is not 0. */
  run(line: string): Promise<string>;
}

async function openOperator(): Promise<Operator> {
  const checkout = makeFolder('checkout');
  onTestFinished(() => removeFolder(checkout));
  cpSync(join(PROJECT, 'k8s'), join(checkout, 'k8s'), { recursive: true });
  const PATH = [dirname(await provide('postgresql')), process.env.PATH].join(delimiter);
  const variables: Record<string, string> = {};
  return {
    checkout,
    variables,
    run: async (line) => {
      const env = { ...variables, PATH, HOME: checkout, LC_ALL: 'C' };
      return (await promisify(execFile)('bash', ['-c', line], { cwd: checkout, env })).stdout;
    },
  };
}

/** Returns a container's environment, and writes its mounted files. Paths in the environment lead to these files. */
function placePod(objects: readonly KubernetesObject[], workload: Workload) {
  const root = makeFolder('pod');
  onTestFinished(() => removeFolder(root));
  const files = listMountedFiles(objects, workload, workload.main);
  const place = (text: string) =>
    [...files.keys()].reduce((placed, path) => placed.replaceAll(path, join(root, path)), text);
  for (const [path, text] of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), place(text));
  }
  const env = Object.entries(readEnvironment(objects, workload.main)).map(([name, text]) => [
    name,
    place(text),
  ]);
  return { root, files, env: Object.fromEntries(env) as Record<string, string>, place };
}

/** What is different in a process on this machine. Debian's PgBouncer is too old for prepared statements. */
const HERE = { HOST: '127.0.0.1', PORT: '0', OTEL_EXPORTER_OTLP_ENDPOINT: '', DATABASE_PREPARE: 'false' };

/** The overlay of an operator: its objects, and the environment of its containers on this machine. */
function buildOverlay({ checkout }: Operator) {
  const folder = join(checkout, 'k8s/overlays/production');
  const secrets = readObjects(readFileSync(join(folder, 'secrets.yaml'), 'utf8'));
  const objects = [...buildKustomization(folder), ...secrets];
  const pod = (name: string) =>
    placePod(objects, listWorkloads(objects).find(({ owner }) => owner.metadata.name === name)!);
  const environmentOf = (name: string): Record<string, string> => {
    const { METRICS_PORT: _, ...env } = pod(name).env;
    return { ...env, ...HERE };
  };
  return { pod, environmentOf };
}

type Overlay = ReturnType<typeof buildOverlay>;

/** Runs the overlay's pooler on this port until the test ends. */
async function startPooler({ pod }: Overlay, port: number): Promise<void> {
  const { root, files, place } = pod('pgbouncer');
  giveFolder(chooseServerAccount(join(root, 'none')), root);
  const ini = [...files.entries()].find(([path]) => path.endsWith('/pgbouncer.ini'))![1];
  await runPgBouncer(
    () =>
      place(ini)
        .replace(/^listen_addr = .*$/m, 'listen_addr = 127.0.0.1')
        .replace(/^listen_port = .*$/m, `listen_port = ${port}`)
        .replace(/^max_prepared_statements = .*\n/m, ''),
    port,
  );
}

/** Step 2 of the installation. */
async function makeRoles(operator: Operator, postgres: ManagedPostgres): Promise<void> {
  operator.variables.ADMIN_DATABASE_URL = postgres.urlOfAdmin();
  await operator.run(
    read(
      'OWNER_PASSWORD=… SERVING_PASSWORD=… psql "$ADMIN_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/administrator.sql',
      ['…', OWNER],
      ['…', SERVING],
    ),
  );
}

/** Runs the migration with the environment of the overlay's Job. Rejects with its output unless the exit code is 0. */
async function migrate(overlay: Overlay): Promise<void> {
  const env = { PATH: process.env.PATH, ...overlay.environmentOf('migrate') };
  await promisify(execFile)(process.execPath, ['src/main.ts', 'migrate'], { env });
}

/** Runs SQL as the administrator. */
const administer = (operator: Operator, sql: string): Promise<string> =>
  operator.run(`psql "$ADMIN_DATABASE_URL" --set=ON_ERROR_STOP=1 --command="${sql}"`);

/** Runs the commands of the section *Users and tokens*. Returns a token of a new user. */
async function useAdminCommands(origin: string, env: Record<string, string>): Promise<string> {
  const admin = (command: string, ...given: [string, string][]) =>
    // biome-ignore lint/suspicious/noExplicitAny: each command prints something else
    runMain(read(command, ...given).split(' '), env) as Promise<any>;
  const { code } = await admin('admin invite create --email ann@example.org');
  expect(await post(origin, '/auth/invite', { code })).toMatchObject({ status: 200 });
  await admin('admin user show --id 2', ['--id 2', '--email ann@example.org']);
  await admin('admin user create --email ann@example.org', ['ann@', 'bob@']);
  await admin('admin user set --email ann@example.org --premium true');
  await admin('admin user set --email ann@example.org --premium false');
  const created = await admin('admin token create --email ann@example.org --scope read');
  const { tokens } = await admin('admin token list --email ann@example.org');
  await admin('admin user list');
  await admin('admin token revoke --id 2-17', ['2-17', tokens.at(-1).id]);
  expect(await post(origin, '/bookmarks/list', {}, created)).toMatchObject({ status: 401 });
  await admin('admin epoch renew');
  await admin('admin user delete --email ann@example.org');
  const { token } = await admin('admin token create --email ann@example.org --scope read', [
    'ann@example.org --scope read',
    'bob@example.org --scope write',
  ]);
  return token;
}

/** The runbook's questions to Postgres. */
const QUESTIONS = [
  `psql "$ADMIN_DATABASE_URL" --command='select 1'`,
  `psql "$ADMIN_DATABASE_URL" --command='select slot_name, active, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) from pg_replication_slots'`,
  `psql "$ADMIN_DATABASE_URL" --command='select pg_is_in_recovery(), now() - pg_last_xact_replay_timestamp() as behind'`,
  `psql "$ADMIN_DATABASE_URL" --command="select pid, usename, wait_event_type, now() - xact_start as open_for, left(query, 60) as query from pg_stat_activity where datname = 'bookmarks' order by xact_start"`,
];

test("the documents' commands install, serve, back up and restore, and change passwords", async () => {
  await using servers = new AsyncDisposableStack();
  const postgres = servers.use(await startManagedPostgres());
  const redis = servers.use(await startManagedRedis());
  const pooler = await findFreePort();
  const operator = await openOperator();
  const { variables, checkout } = operator;

  // Install.
  await makeRoles(operator, postgres);
  variables.MIGRATE_DATABASE_URL = postgres.urlOf('bookmarks_owner', OWNER, 'bookmarks');
  await operator.run(
    read('psql "$MIGRATE_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/roles.sql'),
  );
  const redisAdmin = new Redis(redis.adminUrl, { tls: { ca: readFileSync(CA_FILE) } });
  servers.defer(async () => redisAdmin.disconnect());
  const callRedis = (line: string, ...given: [string, string][]) => {
    const [name, ...args] = read(line, ...given).split(' ');
    return redisAdmin.call(name!, ...args);
  };
  const [setUser] = [...COMMANDS].filter((command) => command.startsWith('ACL SETUSER bookmarks reset'));
  await callRedis(setUser!, ['PASSWORD', REDIS]);
  await callRedis('ACL SAVE');
  const fileOf = (name: string) => join(checkout, 'k8s/overlays/production', name);
  const ports = { postgres: postgres.port, redis: redis.port, pooler };
  const secrets = fillInSecrets(readFileSync(fileOf('secrets.example.yaml'), 'utf8'), ports);
  expect(JSON.stringify(readObjects(secrets))).not.toMatch(/PASSWORD|example\.org/);
  writeFileSync(fileOf('secrets.yaml'), secrets);
  const databases = readFileSync(fileOf('databases.ini'), 'utf8');
  writeFileSync(
    fileOf('databases.ini'),
    databases.replaceAll('host=postgres.example.org port=5432', `host=127.0.0.1 port=${postgres.port}`),
  );
  const overlay = buildOverlay(operator);
  await migrate(overlay);
  await startPooler(overlay, pooler);
  const api = servers.use(await startReplica('api', overlay.environmentOf('api')));
  servers.use(await startReplica('worker', overlay.environmentOf('worker')));
  expect((await api.readiness()).body).toMatchObject({
    status: 'ready',
    database: 'reachable',
    redis: 'shared',
  });

  const token = await useAdminCommands(api.origin, overlay.environmentOf('api'));
  await api.post('/bookmarks/add', { url: 'https://example.org/before', tags: ['a tag'] }, token);
  for (const question of QUESTIONS) await operator.run(read(question));
  expect(await operator.run(read(QUESTIONS.at(-1)!))).toContain('bookmarks_a');

  // Back up, and restore on another server.
  await administer(operator, read("alter role bookmarks_backup login password '…'", ['…', BACKUP]));
  variables.BACKUP_DATABASE_URL = postgres.urlOf('bookmarks_backup', BACKUP, 'bookmarks');
  await operator.run(read('DATABASE_URL="$BACKUP_DATABASE_URL" k8s/backups/backup.sh bookmarks.dump'));
  const other = servers.use(await startManagedPostgres());
  await makeRoles(operator, other);
  variables.NEW_DATABASE_URL = other.urlOf('bookmarks_owner', OWNER, 'bookmarks');
  await operator.run(read('DATABASE_URL="$NEW_DATABASE_URL" k8s/restore.sh bookmarks.dump'));
  const restored = other.urlOf('bookmarks_a', SERVING, 'bookmarks');
  const replica = servers.use(
    await startReplica('api', {
      ...overlay.environmentOf('api'),
      DATABASE_URL: restored,
      REDIS_PREFIX: 'other',
    }),
  );
  const bookmarksOf = async ({ origin }: { origin: string }) =>
    (await post(origin, '/export', {}, { token })).body.bookmarks;
  expect(await bookmarksOf(replica)).toEqual(await bookmarksOf(api));
  expect(await bookmarksOf(replica)).toMatchObject([{ url: 'https://example.org/before' }]);
  const added = await replica.post('/bookmarks/add', { url: 'https://example.org/after' }, token);
  expect(added.status).toBe(200);
  expect(await findFaults(withoutVerification(other.urlOfAdmin('bookmarks')))).toEqual([]);

  // Change the passwords of the migrating role and of Redis.
  variables.ADMIN_DATABASE_URL = postgres.urlOfAdmin();
  await administer(operator, read("alter role bookmarks_owner password '…'", ['…', NEW]));
  await expect(migrate(overlay)).rejects.toThrow('28P01');
  await callRedis('ACL SETUSER bookmarks >new-password', ['new-password', NEW]);
  writeFileSync(
    fileOf('secrets.yaml'),
    secrets
      .replace(`bookmarks_owner:${OWNER}`, `bookmarks_owner:${NEW}`)
      .replace(`bookmarks:${REDIS}`, `bookmarks:${NEW}`),
  );
  const changed = buildOverlay(operator);
  await migrate(changed);
  const successor = servers.use(await startReplica('api', changed.environmentOf('api')));
  await callRedis('ACL SETUSER bookmarks <old-password', ['old-password', REDIS]);
  expect((await successor.readiness()).body).toMatchObject({ status: 'ready', redis: 'shared' });
  expect(await bookmarksOf(successor)).toHaveLength(1);
});
