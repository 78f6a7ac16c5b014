import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { administer, type Rotation, startRotation, startServer } from '../k8s/rotation.ts';
import { makeNodes, resetNodes } from '../k8s/stand-in-nodes.ts';
import { findFreePort } from '../support/ports.ts';
import { provide } from '../support/programs.ts';
import { runOn } from '../support/run-on.ts';

/**
 * Tests `k8s/rotate.sh` on one server and on several. On one server, the script also runs as an administrator who is
 * not a superuser, as on a managed Postgres. This administrator has run `k8s/database/administrator.sql`.
 */

/** A single server, and three servers that know each other. */
let alone: string;
let nodes: string[];

beforeAll(async () => {
  await provide('postgresql');
  const servers = new AsyncDisposableStack();
  [alone, ...nodes] = (await Promise.all(Array.from({ length: 4 }, () => startServer(servers)))) as [
    string,
    ...string[],
  ];
  await makeNodes(nodes);
  return () => servers.disposeAsync();
});

const ROLES = ['bookmarks_a', 'bookmarks_b'];

/**
 * Returns the administrator's url. The server does not check the password in this url. No output may show that
 * password.
 */
const asProvider = (url: string): string =>
  Object.assign(new URL(url), {
    username: 'provider',
    password: 'of%20the%25provider',
    pathname: '/postgres',
  }).href;

/** Returns the password of a role in PgBouncer's file of users. */
const passwordOf = (rotation: Rotation, role: string): string =>
  new RegExp(`"${role}" "(.*)"`).exec(rotation.readSecret('pgbouncer/userlist.txt'))![1]!;

/**
 * Returns the expected roll-outs: of PgBouncer, of the pods, and of PgBouncer again. Each text ends with the role that
 * the pods use after the roll-out.
 */
const ROLLS = (old: string, role: string) => [
  `deployment/pgbouncer ${old}`,
  `deployment/api ${role}`,
  `deployment/worker ${role}`,
  `deployment/pgbouncer ${role}`,
];

test('a rotation changes the role while the service always works, and disables the old one', async () => {
  const rotation = await startRotation([alone]);
  const [url] = rotation.nodes as [string];
  const rotate = () => rotation.run({ admin: asProvider(url) });
  const asOld = Object.assign(new URL(url), { username: 'bookmarks_a', password: 'first' }).href;
  const old = postgres(asOld, { max: 1, onnotice: () => {} });
  await old`select 1`;
  expect(await rotate()).toMatchObject({
    code: 0,
    output: expect.stringContaining('rotate: bookmarks_b serves'),
  });
  expect(rotation.takeSeen()).toEqual(ROLLS('bookmarks_a', 'bookmarks_b'));
  const users = rotation.readSecret('pgbouncer/userlist.txt').trim().split('\n');
  expect(users).toEqual(['"metrics" "stats"', expect.stringMatching(/^"bookmarks_b" "[0-9a-f]{64}"$/)]);
  const password = users[1]!.split('"')[3]!;
  for (const [key, database] of [
    ['DATABASE_URL', 'bookmarks'],
    ['DATABASE_IMPORT_URL', 'bookmarks_import'],
  ])
    expect(rotation.readSecret(`connections/${key}`)).toMatch(
      new RegExp(`^postgres://bookmarks_b:${password}@127.0.0.1:\\d+/${database}$`),
    );
  const [roles] = await runOn(
    url,
    `select string_agg(rolname, ' ' order by rolname) as login from pg_roles where rolcanlogin and rolname like 'bookmarks\\__'`,
  );
  expect(roles).toMatchObject({ login: 'bookmarks_b' });
  expect(await rotation.logIn('bookmarks_b', password)).toEqual([true]);
  const sessions = () => runOn(url, "select from pg_stat_activity where usename = 'bookmarks_a'");
  await expect.poll(sessions).toEqual([]);
  await old.end({ timeout: 0 });

  // Rotates back to the first role, with another password.
  expect((await rotate()).code).toBe(0);
  expect(rotation.takeSeen()).toEqual(ROLLS('bookmarks_b', 'bookmarks_a'));
  expect(rotation.readSecret('connections/DATABASE_URL')).toContain('//bookmarks_a:');
  expect(rotation.readSecret('connections/DATABASE_URL')).not.toContain('first');
  expect([
    await rotation.logIn('bookmarks_a', 'first'),
    await rotation.logIn('bookmarks_b', password),
  ]).toEqual([[false], [false]]);
});

test('a run that is interrupted before any step and repeated ends with the same role, and the pods work meanwhile', async () => {
  const rotation = await startRotation([alone]);
  const old = () => /\/\/(bookmarks_[ab]):/.exec(rotation.readSecret('connections/DATABASE_URL'))![1]!;
  const calls = join(rotation.folder, 'calls');
  let stops = 0;
  for (let code = 1; code !== 0; stops += 1) {
    const before = old();
    rotation.before(`[ $1 = get ] || { echo >>${calls}; [ $(wc -l <${calls}) -le ${stops} ]; }`);
    writeFileSync(calls, '');
    ({ code } = await rotation.run());
    rotation.before('');
    // After the interruption, some pods may use the new role and others the old one. All of them can connect.
    expect(
      (await rotation.reach()).filter((user) => !ROLES.includes(user)),
      `${stops}`,
    ).toEqual([]);
    if (code !== 0) expect((await rotation.run()).code).toBe(0);
    expect([old(), ...(await rotation.reach())]).toEqual(
      Array(2).fill(ROLES.find((role) => role !== before)),
    );
    const words = rotation.takeSeen().flatMap((line) => line.split(' ').slice(1));
    expect(
      words.filter((user) => !ROLES.includes(user)),
      `${stops}`,
    ).toEqual([]);
    expect(rotation.readSecret('pgbouncer/userlist.txt').split('\n')).toHaveLength(3);
  }
  // The loop interrupted each of four writes of Secrets once, and each of four roll-outs twice: at its beginning and at
  // its end. The last run was complete.
  expect(stops).toBe(4 + 2 * 4 + 1);
});

test('no secret is an argument of a program, in the output, or in the log of the server', async () => {
  const rotation = await startRotation([alone]);
  const [url] = rotation.nodes as [string];
  await runOn(url, `alter system set log_statement = 'all'`);
  await runOn(url, 'select pg_reload_conf()');
  const wrapped = join(rotation.folder, 'wrapped');
  mkdirSync(wrapped);
  symlinkSync('/bin/bash', join(wrapped, 'bash'));
  const log = join(rotation.folder, 'arguments');
  const programs = 'base64 cat cp grep kubectl mkfifo mktemp mv node od psql rm sed seq sleep sort tr xargs';
  for (const program of programs.split(' ')) {
    const path = `${rotation.folder}:${rotation.programs}:${process.env.PATH}`;
    const file = join(wrapped, program);
    writeFileSync(file, `#!/bin/bash\nprintf '%s\\n' "$*" >>${log}\nPATH='${path}' exec ${program} "$@"\n`);
    chmodSync(file, 0o755);
  }
  // PATH contains only the folder of the wrappers above, so the test sees the arguments of every program that runs.
  const { code, output } = await rotation.run({ admin: asProvider(url), path: wrapped });
  expect([code, output]).toEqual([0, expect.stringContaining('rotate: bookmarks_b serves')]);
  const password = passwordOf(rotation, 'bookmarks_b');
  const [{ folder }] = (await runOn<{ folder: string }>(
    url,
    `select current_setting('data_directory') as folder`,
  )) as [{ folder: string }];
  const text = readFileSync(join(folder, '../server.log'), 'utf8');
  const seen = readFileSync(log, 'utf8');
  expect([seen, text]).toEqual([
    expect.stringContaining('--patch-file'),
    expect.stringContaining('alter role'),
  ]);
  for (const secret of [
    password,
    Buffer.from(password).toString('base64').slice(0, 60),
    'of the%provider',
    'of%20the',
    'first',
  ])
    for (const place of [seen, output, text]) expect(place).not.toContain(secret);
});

test('a second run during the first one changes nothing', async () => {
  const rotation = await startRotation([alone]);
  const second = join(rotation.folder, 'second');
  rotation.before(
    `if [ "$1 $3" = 'rollout deployment/api' ] && mkdir ${second}; then
      bash ${join(import.meta.dirname, '../../k8s/rotate.sh')} >${second}/output 2>&1 && exit 1 || true
    fi`,
  );
  expect((await rotation.run()).code).toBe(0);
  rotation.before('');
  expect(readFileSync(join(second, 'output'), 'utf8')).toBe(
    'rotate: another run is in progress; nothing was changed\n',
  );
  expect(await rotation.reach()).toEqual(['bookmarks_b']);
});

test('a rotation without the password of its role is refused, and the role of the pods keeps its password', async () => {
  const rotation = await startRotation([alone]);
  const lines = '"bookmarks_a" "first"\n; k8s/rotate.sh changes over to bookmarks_a\n';
  writeFileSync(
    join(rotation.folder, 'pgbouncer/userlist.txt'),
    lines.replace('"bookmarks_a"', '"bookmarks_b"'),
  );
  const { code, output } = await rotation.run();
  expect([code, output]).toEqual([1, expect.stringContaining('has no password of bookmarks_a')]);
  expect(await rotation.logIn('bookmarks_a', 'first')).toEqual([true]);
});

/** Prepares a rotation on the nodes of the cluster. */
async function startNodes(): Promise<Rotation> {
  await resetNodes(nodes);
  return startRotation(nodes);
}

const portOf = (url: string): string => new URL(url).port;

/**
 * Prepares the loss of the last node. The statement `sql` changes the node's port in the coordinator's list, so that
 * the coordinator cannot reach the node. `comeBack` restores the port. `name` is how the script names the node.
 */
async function loseLast({
  nodes,
}: Rotation): Promise<{ name: string; sql: string; comeBack(): Promise<unknown> }> {
  const [coordinator, , last] = nodes as [string, string, string];
  const port = await findFreePort();
  const change = (from: string | number, to: string | number) =>
    `update pg_catalog.pg_dist_node set nodeport = ${to} where nodeport = ${from}`;
  const comeBack = () => runOn(coordinator, change(port, portOf(last)));
  return { name: `127.0.0.1:${port}`, sql: change(portOf(last), port), comeBack };
}

/** Checks, after a run that stopped early, that PgBouncer and the pods still use the old role and its old password. */
async function expectUntouched(rotation: Rotation): Promise<void> {
  expect(rotation.readSecret('pgbouncer/userlist.txt')).toBe('"bookmarks_a" "first"\n"metrics" "stats"\n');
  expect(rotation.readSecret('connections/DATABASE_URL')).toContain('//bookmarks_a:first@');
  expect(rotation.takeSeen()).toEqual([]);
  expect(await rotation.reach()).toEqual(['bookmarks_a']);
  expect(await rotation.logIn('bookmarks_a', 'first')).toEqual([true, true, true]);
}

/** Checks that all nodes accept the new password, and that none accepts the old one. */
async function expectRotated(rotation: Rotation): Promise<void> {
  expect(await rotation.reach()).toEqual(['bookmarks_b']);
  const password = passwordOf(rotation, 'bookmarks_b');
  expect(await rotation.logIn('bookmarks_b', password)).toEqual([true, true, true]);
  expect(await rotation.logIn('bookmarks_a', 'first')).toEqual([false, false, false]);
}

describe('with several nodes', () => {
  test('each node gets the new role and locks the old one, also when it is done twice', async () => {
    const rotation = await startNodes();
    expect((await rotation.run()).code).toBe(0);
    expect(rotation.takeSeen()).toEqual(ROLLS('bookmarks_a', 'bookmarks_b'));
    await expectRotated(rotation);
    const password = passwordOf(rotation, 'bookmarks_b');
    expect((await rotation.run()).code).toBe(0);
    expect(rotation.takeSeen()).toEqual(ROLLS('bookmarks_b', 'bookmarks_a'));
    expect(await rotation.logIn('bookmarks_b', password)).toEqual([false, false, false]);
    expect(await rotation.logIn('bookmarks_a', passwordOf(rotation, 'bookmarks_a'))).toEqual([
      true,
      true,
      true,
    ]);
  });

  test('a node that is down when the password is set stops the rotation before PgBouncer, and a second run completes it', async () => {
    const rotation = await startNodes();
    const lost = await loseLast(rotation);
    await runOn(rotation.nodes[0]!, lost.sql);
    for (const _ of [1, 2]) {
      const { code, output } = await rotation.run();
      expect([code, output]).toEqual([1, expect.stringContaining(`rotate: ${lost.name}: `)]);
      expect(output).toContain('PgBouncer and the pods were not changed, and bookmarks_a serves');
      await expectUntouched(rotation);
    }
    // Nobody knows the new passwords that the earlier runs gave to the other two nodes. This run gives all three nodes
    // the same new password.
    await lost.comeBack();
    expect((await rotation.run()).code).toBe(0);
    await expectRotated(rotation);
  });

  test('a node that goes down before the old role is locked is named, and a second run locks it without a roll-out', async () => {
    const rotation = await startNodes();
    const lost = await loseLast(rotation);
    rotation.before(
      `if [ "$1 $3" = 'rollout deployment/worker' ]; then psql -qc '${lost.sql}' ${rotation.nodes[0]}; fi`,
    );
    const { code, output } = await rotation.run();
    rotation.before('');
    expect([code, output]).toEqual([1, expect.stringContaining(`rotate: ${lost.name}: `)]);
    expect(output).toContain('bookmarks_b serves, but bookmarks_a may still log in there');
    expect(await rotation.reach()).toEqual(['bookmarks_b']);
    expect(await rotation.logIn('bookmarks_a', 'first')).toEqual([false, false, true]);
    expect(rotation.takeSeen()).toEqual(ROLLS('bookmarks_a', 'bookmarks_b'));
    const password = passwordOf(rotation, 'bookmarks_b');
    await lost.comeBack();
    expect((await rotation.run()).output).toContain('rotate: bookmarks_b serves');
    expect(rotation.takeSeen()).toEqual([]);
    expect(passwordOf(rotation, 'bookmarks_b')).toBe(password);
    await expectRotated(rotation);
  });

  test('if a node goes down while the pods roll out, a second run continues with the same password', async () => {
    const rotation = await startNodes();
    const lost = await loseLast(rotation);
    // The run stops after the api got the new url, and before the worker gets it.
    rotation.before(
      `if [ "$1 $2 $3" = 'rollout restart deployment/worker' ]; then psql -qc '${lost.sql}' ${rotation.nodes[0]}; exit 1; fi`,
    );
    expect((await rotation.run()).code).toBe(1);
    rotation.before('');
    const password = passwordOf(rotation, 'bookmarks_b');
    expect(await rotation.reach()).toEqual(ROLES);
    const { code, output } = await rotation.run();
    expect([code, output]).toEqual([1, expect.stringContaining(`rotate: ${lost.name}: `)]);
    expect(await rotation.reach()).toEqual(ROLES);
    await lost.comeBack();
    expect((await rotation.run()).code).toBe(0);
    expect(passwordOf(rotation, 'bookmarks_b')).toBe(password);
    await expectRotated(rotation);
  });

  test('a node without the role is named, and a second run completes when the role exists', async () => {
    const rotation = await startNodes();
    const added = rotation.nodes[2]!;
    await runOn(added, 'drop role bookmarks_b');
    const { code, output } = await rotation.run();
    const fault = `rotate: 127.0.0.1:${portOf(added)}: ERROR: role "bookmarks_b" does not exist`;
    expect([code, output]).toEqual([1, expect.stringContaining(fault)]);
    await expectUntouched(rotation);
    await administer(added, 'another');
    expect((await rotation.run()).code).toBe(0);
    await expectRotated(rotation);
  });

  test('a node that the others cannot reach with the new role stops the rotation', async () => {
    const rotation = await startNodes();
    const full = rotation.nodes[1]!;
    await runOn(full, 'alter role bookmarks_b connection limit 0');
    const { code, output } = await rotation.run();
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(`rotate: .* does not reach 127.0.0.1:${portOf(full)} as bookmarks_b`),
    ]);
    await expectUntouched(rotation);
    await runOn(full, 'alter role bookmarks_b connection limit -1');
    expect((await rotation.run()).code).toBe(0);
    await expectRotated(rotation);
  });

  test('a node that was replaced under another name gets the role under the name that the coordinator knows', async () => {
    const rotation = await startNodes();
    const [coordinator, worker] = rotation.nodes as [string, string];
    await runOn(
      coordinator,
      `update pg_catalog.pg_dist_node set nodename = 'localhost' where nodeport = ${portOf(worker)}`,
    );
    expect((await rotation.run()).code).toBe(0);
    await expectRotated(rotation);
  });

  test('an inactive node is named before anything is changed, and a secondary is ignored', async () => {
    const rotation = await startNodes();
    const [coordinator, , last] = rotation.nodes as [string, string, string];
    const change = `update pg_catalog.pg_dist_node set isactive = false`;
    await runOn(coordinator, `${change} where nodeport = ${portOf(last)}`);
    const { code, output } = await rotation.run();
    expect([code, output]).toEqual([
      1,
      `rotate: 127.0.0.1:${portOf(last)} is not active: activate it, or remove it from the cluster; nothing was changed\n`,
    ]);
    await expectUntouched(rotation);
    expect(await rotation.logIn('bookmarks_b', '')).toEqual([false, false, false]);
    await runOn(
      coordinator,
      `update pg_catalog.pg_dist_node set isactive = true;
      insert into pg_catalog.pg_dist_node
      values (9, 2, 'nowhere', 1, 'secondary', false)`,
    );
    expect((await rotation.run()).code).toBe(0);
    await expectRotated(rotation);
  });

  test('the url of a worker node is refused', async () => {
    const rotation = await startNodes();
    const [, worker] = rotation.nodes as [string, string];
    const { code, output } = await rotation.run({ admin: worker });
    expect([code, output]).toEqual([
      1,
      'rotate: ADMIN_DATABASE_URL does not lead to the coordinator; nothing was changed\n',
    ]);
    await expectUntouched(rotation);
  });
});
