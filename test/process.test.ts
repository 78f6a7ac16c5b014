import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { Logger } from 'pino';
import postgres from 'postgres';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { migrateWithRetries } from '../src/process/run-migrations.ts';
import type { ServingRole } from '../src/process/serve.ts';
import { readSchemaFiles } from '../src/store/schema/schema-files.ts';
import { type Outcome, runCommand, runHere, startCommand } from './support/command.ts';
import { createDatabase, runOn, type TestDatabase } from './support/database.ts';
import { startPostgres } from './support/postgres.ts';
import { type Replica, startReplica } from './support/replica.ts';
import { type TestUser, useService } from './support/service.ts';
import { silentLog } from './support/silent-log.ts';
import { until } from './support/until.ts';

// Tests what `node src/main.ts [role]` promises to those who start it.

/** What `/readyz` reports if Postgres is reachable and the service has no Redis. */
const STORES = { database: 'reachable', redis: 'none' };

const service = useService();
let url: string;

beforeAll(() => {
  url = service.database.url;
});

const get = async (replica: Replica, path: string) => {
  const response = await fetch(replica.origin + path);
  return { status: response.status, body: await response.json() };
};

/** Sets these variables and runs a role in this process. The role must refuse to serve. */
async function runRefused(role: string, env: Record<string, string | undefined>): Promise<Outcome> {
  const all = { NODE_ENV: undefined, DATABASE_URL: url, LOG_LEVEL: 'silent', PORT: '0', ...env };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  try {
    return await runHere([role], {});
  } finally {
    vi.unstubAllEnvs();
  }
}

/** Expects exit code 1, no stack trace, and one line on standard error that says what to do. */
function expectRefusal({ code, output, errors }: Outcome, message: RegExp): void {
  expect({ code, output }).toEqual({ code: 1, output: '' });
  expect(errors).toMatch(message);
  expect(errors.trimEnd().split('\n')).toHaveLength(1);
  expect(errors).not.toMatch(/geheim/);
}

const latestVersion = (of: TestDatabase) =>
  runOn<{ version: number }>(of.url, 'select max(version) as version from schema_migrations');

/** Returns Linux's limit for connections that wait to be accepted. */
const readQueueCap = () => Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));

test.runIf(process.platform === 'linux' && readQueueCap() >= 4_096)(
  'thousands of clients that connect at once wait in the queue until the process accepts them',
  async () => {
    await using replica = await startReplica('api', { DATABASE_URL: url });
    await replica.freeze();
    const sockets = Array.from({ length: 2_000 }, () => connect(Number(new URL(replica.origin).port)));
    try {
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      replica.thaw();
      sockets.at(-1)!.write('GET /livez HTTP/1.1\r\nHost: test\r\n\r\n');
      const [response] = await once(sockets.at(-1)!, 'data');
      expect(String(response)).toContain('200 OK');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  },
);

describe.concurrent('roles', () => {
  test.each<[ServingRole, boolean]>([
    ['all', true],
    ['api', true],
    ['worker', false],
  ])('%s answers /livez and /readyz on PORT', async (role, servesApi) => {
    await using replica = await startReplica(role, { DATABASE_URL: url });
    expect(await get(replica, '/livez')).toEqual({ status: 200, body: { status: 'ok' } });
    expect(await get(replica, '/readyz')).toEqual({ status: 200, body: { status: 'ready', ...STORES } });
    const user = await service.user();
    const response = await fetch(`${replica.origin}/api/v1/user/profile`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${user.token}` },
    });
    expect(response.status).toBe(servesApi ? 200 : 404);
    expect(await replica.stop()).toBe(0);
  });

  test('a process without an argument has the role all, and migrates an empty database', async () => {
    await using database = await createDatabase();
    const latest = await latestVersion(database);
    await runOn(database.url, 'drop schema public cascade; create schema public');
    await using replica = await startReplica('all', { DATABASE_URL: database.url });
    expect(await latestVersion(database)).toEqual(latest);
    expect((await get(replica, '/readyz')).status).toBe(200);
  });

  test('migrate brings a database to the newest schema, and can be run again', async () => {
    await using database = await createDatabase();
    const latest = await latestVersion(database);
    await runOn(database.url, 'drop schema public cascade; create schema public');
    const migrate = () => runCommand(['migrate'], { DATABASE_URL: database.url, LOG_LEVEL: 'silent' });
    const outcomes = [...(await Promise.all([migrate(), migrate()])), await migrate()];
    for (const outcome of outcomes) expect(outcome).toEqual({ code: 0, output: '', errors: '' });
    expect(await latestVersion(database)).toEqual(latest);
  });

  test('migrate waits for a Postgres that starts later', async () => {
    await using server = await startPostgres();
    const env = { DATABASE_URL: server.url, MIGRATE_WAIT_SECONDS: '60' };
    await server.kill();
    const { ended, untilLogged } = startCommand(['migrate'], env);
    await untilLogged('migration failed; retrying');
    await server.restart();
    expect(await ended).toMatchObject({ code: 0, errors: '' });
  });

  test('migrate waits for a table in use, and fails at its deadline without having changed anything', async () => {
    await using database = await createDatabase();
    await runOn(database.url, 'drop schema public cascade');
    await runOn(database.url, 'create schema public');
    await runOn(
      database.url,
      `create table schema_migrations (
        version integer primary key, name text not null, works_with integer not null,
        applied_at timestamptz not null default now()
      )`,
    );
    const holder = postgres(database.url, { max: 1, onnotice: () => {} });
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>();
    const holding = holder.begin(async (sql) => {
      await sql`lock table schema_migrations in share mode`;
      hold();
      await isReleased;
    });
    await isHeld;
    const tries: string[] = [];
    const log = { ...silentLog, warn: (_: object, message: string) => void tries.push(message) };
    const migrate = (migrateWaitSeconds: number) =>
      migrateWithRetries(database.url, { migrateWaitSeconds, databaseSharding: undefined }, log as Logger);
    const beganAt = performance.now();
    await expect(migrate(2)).rejects.toThrow(/55P03|lock timeout/);
    // Without the deadline, a single attempt would wait for 30 s.
    expect(performance.now() - beganAt).toBeLessThan(25_000);
    const count = () => runOn(database.url, 'select from schema_migrations');
    expect(await count()).toEqual([]);
    const late = migrate(120);
    await until(async () => (await runOn(database.url, 'select from pg_locks where not granted')).length > 0);
    release();
    await holding;
    await late;
    expect(await count()).toHaveLength(readSchemaFiles().migrations.length);
    await holder.end();
  });

  test('migrate fails at its deadline, and at once after errors that waiting does not solve', async () => {
    const nobody = { DATABASE_URL: 'postgres://127.0.0.1:1/bookmarks', LOG_LEVEL: 'silent' };
    const late = await runCommand(['migrate'], { ...nobody, MIGRATE_WAIT_SECONDS: '0' });
    expect(late).toMatchObject({ code: 1, errors: expect.stringContaining('database unavailable: connect') });
    const missing = new URL(url);
    missing.pathname = '/no_such_database';
    // If the command did not fail at once, it would wait for an hour. This test would then exceed its time limit.
    const refused = await runCommand(['migrate'], {
      DATABASE_URL: missing.href,
      MIGRATE_WAIT_SECONDS: '3600',
      LOG_LEVEL: 'silent',
    });
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('3D000') });
  });

  test('--help names the roles; an unknown role is refused', async () => {
    const help = await runCommand(['--help'], {});
    expect(help.code).toBe(0);
    for (const role of ['all', 'api', 'worker', 'migrate', 'admin']) expect(help.output).toContain(role);
    const unknown = await runCommand(['server'], { DATABASE_URL: url });
    expect([unknown.code, unknown.output]).toEqual([1, '']);
    expect(unknown.errors).toMatch(/^error: unknown command 'server'/);
  });
});

describe('a schema that does not work with the code is refused', () => {
  test('by api and worker if it is older, with the command to run', async () => {
    await using database = await createDatabase();
    await runOn(
      database.url,
      'delete from schema_migrations where version = (select max(version) from schema_migrations)',
    );
    for (const role of ['api', 'worker'])
      expectRefusal(
        await runRefused(role, { DATABASE_URL: database.url }),
        /schema has version \d+.*main.ts migrate/,
      );
  });

  test('by every role if it is newer', async () => {
    await using database = await createDatabase();
    await runOn(
      database.url,
      "insert into schema_migrations (version, name, works_with) values (9999, 'to-come', 9999)",
    );
    for (const role of ['api', 'worker', 'all', 'migrate'])
      expectRefusal(
        await runRefused(role, { DATABASE_URL: database.url }),
        /schema has version 9999 .* as new as the database/,
      );
  });
});

describe('an invalid configuration causes one line that names the variable, without a stack trace', () => {
  test('for a process', async () => {
    const env = { DATABASE_URL: 'postgres://u:geheim@h:port/b', LOG_LEVEL: 'silent' };
    expectRefusal(await runCommand(['api'], env), /^DATABASE_URL: /);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'for a value that is not a number',
      { PORT: 'http' },
      /^PORT: expected an integer from 0 to 65535, got "http"; for example /,
    ],
    ['for a number out of range', { SYNC_WAIT_SECONDS: '31' }, /^SYNC_WAIT_SECONDS: .*1 to 30.*"31"/],
    [
      'for production without server addresses',
      { NODE_ENV: 'production' },
      /^REDIS_URL: required when NODE_ENV=production/,
    ],
    ['for a value that is not a Postgres url', { DATABASE_URL: 'mysql://u:geheim@h/b' }, /^DATABASE_URL: /],
    ['for an invalid url that looks valid', { DATABASE_URL: 'postgres://u:geheim@h:port/b' }, /DATABASE_URL/],
    [
      'for a certificate file that does not exist',
      { DATABASE_URL: 'postgres://h/b?sslrootcert=/no/such.pem' },
      /DATABASE_URL.*such\.pem/,
    ],
    [
      'for a database that cannot be reached',
      { DATABASE_URL: 'postgres://u:geheim@127.0.0.1:1/b' },
      /^DATABASE_URL: database unavailable: .*ECONNREFUSED/,
    ],
    [
      'for a host that does not belong to this machine',
      { HOST: '192.0.2.1' },
      /^HOST and PORT: .*192\.0\.2\.1/,
    ],
    [
      'for a host name that does not exist',
      { HOST: 'no-such-host.invalid' },
      /^HOST and PORT: .*no-such-host\.invalid/,
    ],
  ])('%s', async (_, env, message) => {
    expectRefusal(await runRefused('api', env), message);
  });

  test('for a metrics port that is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    expectRefusal(
      await runRefused('api', { METRICS_PORT: String(port) }),
      new RegExp(`^METRICS_PORT: cannot listen on 127.0.0.1:${port} `),
    );
    other.close();
  });

  test('for a folder that cannot be created', async () => {
    const { code, errors } = await runRefused('api', {
      DATABASE_URL: undefined,
      DATA_DIR: `${import.meta.filename}/data`,
    });
    expect([code, errors]).toEqual([
      1,
      expect.stringMatching(/^cannot create or use the data folder .*DATA_DIR/),
    ]);
  });

  test('for a port that is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    for (const role of ['api', 'worker'])
      expectRefusal(
        await runRefused(role, { PORT: String(port) }),
        new RegExp(`^HOST and PORT: .*${port}.*EADDRINUSE`),
      );
    other.close();
  });
});

describe('stopping', () => {
  let user: TestUser;

  beforeEach(async () => {
    user = await service.user();
  });

  test.each<NodeJS.Signals>(['SIGTERM', 'SIGINT'])(
    'after %s, held polls get an empty response with Connection: close, and the process exits with 0',
    async (signal) => {
      await using replica = await startReplica('api', { DATABASE_URL: url });
      const polls = [1, 2, 3].map((cursor) =>
        replica.post('/bookmarks/sync', { cursor, wait: true }, user.token),
      );
      await replica.untilHeld(3);
      replica.signal(signal);
      for (const [i, poll] of polls.entries()) {
        const { status, body, headers } = await poll;
        expect(status).toBe(200);
        expect(body).toEqual({
          bookmarks: [],
          cursor: i + 1,
          has_more: false,
          waited: true,
        });
        expect(headers.get('x-retry-after-ms')).toMatch(/^\d+$/);
        expect(headers.get('connection')).toBe('close');
      }
      expect(await replica.ended).toBe(0);
    },
  );

  test.each<[NodeJS.Signals, string]>([
    ['SIGUSR2', 'uncaughtException'],
    ['SIGPIPE', 'unhandledRejection'],
  ])(
    'after an uncaught fault, the process ends its polls, logs the fault and exits with 1: %s',
    async (signal, message) => {
      const NODE_OPTIONS = '--import=./test/support/fault-on-signal.ts';
      await using replica = await startReplica('api', { DATABASE_URL: url, NODE_OPTIONS });
      const poll = replica.post('/bookmarks/sync', { cursor: 7, wait: true }, user.token);
      await replica.untilHeld(1);
      replica.signal(signal);
      expect((await poll).body).toEqual({
        bookmarks: [],
        cursor: 7,
        has_more: false,
        waited: true,
      });
      expect(await replica.ended).toBe(1);
      const fault = replica.log.find(({ msg }) => msg === message)!;
      expect(fault).toMatchObject({ level: 60, err: { message: 'a fault made by a test' } });
    },
  );

  test('no log line of a process contains a token, from its start to its end', async () => {
    await using replica = await startReplica('all', { DATABASE_URL: url, LOG_LEVEL: 'trace' });
    await replica.post('/bookmarks/add', { url: 'https://example.org/private' }, user.token);
    await replica.post('/user/profile', {}, `${user.token}x`);
    await replica.stop();
    const text = JSON.stringify(replica.log);
    expect(text).toContain('/api/v1/bookmarks/add');
    for (const hidden of [user.token, user.token.slice(-43), 'private', new URL(url).password || '\0']) {
      expect(text).not.toContain(hidden);
    }
  });
});
