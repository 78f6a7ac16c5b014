import { expect, test } from 'vitest';
import { buildKustomization } from '../k8s/check/kustomize.ts';
import { overlayFolder } from '../k8s/check/overlay.ts';
import { withDatabase } from './support/database.ts';
import { openFleet } from './support/fleet.ts';
import { runPgBouncer } from './support/pgbouncer.ts';
import { openPool, throughPort } from './support/pool.ts';

const objects = buildKustomization(overlayFolder('production'));
const { data } = objects.find((object) => object.data?.['pgbouncer.ini'])!;
const ini: string = data['pgbouncer.ini'].replace(/^%include .*$/m, data['databases.ini']);

/**
 * Settings of the overlay that do not work here, because they need certificates, a list of users, or a newer PgBouncer
 * than Debian's.
 */
const NOT_HERE = /^(max_prepared_statements|server_tls_\w+|auth_\w+|listen_\w+) = .*\n/gm;

/** Starts the production overlay's pooler for this database. Returns the pooler's urls for requests and imports. */
async function startOverlayPooler(databaseUrl: string, change = (text: string) => text) {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const server = `host=${hostname} port=${port} dbname=${pathname.slice(1)} user=${username} ${password && `password='${password}'`}`;
  const here = change(ini)
    .replaceAll('host=postgres.example.org port=5432 dbname=bookmarks', server)
    .replaceAll(NOT_HERE, '');
  const poolerPort = await runPgBouncer(
    (listenPort) => `${here}\nauth_type = any\nlisten_addr = 127.0.0.1\nlisten_port = ${listenPort}\n`,
  );
  const through = throughPort(databaseUrl, poolerPort);
  return { requests: withDatabase(through, 'bookmarks'), imports: withDatabase(through, 'bookmarks_import') };
}

test("the production pooler's sessions have the service's timeouts, shorter for requests than for imports", async () => {
  await using fleet = await openFleet();
  const { pathname } = new URL(fleet.databaseUrl);
  await fleet.sql.unsafe(
    `alter database ${pathname.slice(1)} set default_transaction_isolation = 'serializable'`,
  );
  const isolation = 'read committed';
  const urls = await startOverlayPooler(fleet.databaseUrl);
  const warnings: string[] = [];
  const log = { warn: (_facts: object, message: string) => void warnings.push(message) };
  const readTimeouts = async (url: string) => {
    const database = await openPool({ url, prepare: false, log });
    const [row] = await database.read(
      (sql) => sql`
        select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
          current_setting('default_transaction_isolation') as isolation`,
    );
    return row;
  };
  expect(await readTimeouts(urls.requests)).toEqual({ statement: '6s', lock: '3s', isolation });
  expect(await readTimeouts(urls.imports)).toEqual({ statement: '2min', lock: '2min', isolation });
  expect(warnings).toEqual([]);
});

test('an import may wait longer than a request of the same user', async () => {
  await using fleet = await openFleet();
  const urls = await startOverlayPooler(fleet.databaseUrl, (text) =>
    text.replace('lock_timeout = 3000', 'lock_timeout = 700'),
  );
  const replica = await fleet.start('all', {
    DATABASE_URL: urls.requests,
    DATABASE_IMPORT_URL: urls.imports,
    DATABASE_PREPARE: 'false',
    IMPORT_INLINE_BYTES: 0,
  });
  const user = await fleet.user();
  await using lock = await fleet.hold(`select from accounts where user_id = ${user.id} for no key update`);
  const imported = replica.post('/import', { bookmarks: [{ url: 'https://example.org/' }] }, user.token);
  const { pid } = await fleet.untilBlocked('from import_bookmarks(');
  const readStart = () => fleet.sql`select state, query_start from pg_stat_activity where pid = ${pid}`;
  const before = await readStart();
  const added = await replica.post('/bookmarks/add', { url: 'https://example.org/other' }, user.token);
  expect(added.status).toBe(503);
  expect(await readStart()).toEqual(before);
  await lock.release();
  const { status, body } = await imported;
  expect({ status, imported: body.imported }).toEqual({ status: 200, imported: 1 });
  expect(await fleet.urls(user)).toEqual(['https://example.org/']);
});
