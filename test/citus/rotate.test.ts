import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { type Rotation, startRotation } from '../k8s/rotation.ts';
import { createEmptyShardedDatabase, type ShardedDatabase, withNodeClosed } from '../support/citus.ts';
import { runOn } from '../support/run-on.ts';

// Runs k8s/rotate.sh with the nodes that the coordinator lists. The tests change roles, which belong to the whole
// cluster.

let database: ShardedDatabase;
let rotation: Rotation;

// Creates the roles through the coordinator. Citus then copies each change of these roles to the other nodes, unless
// the script prevents that.
beforeEach(async () => {
  database = await createEmptyShardedDatabase(inject('citusUrl')!);
  await runOn(database.url, 'create role bookmarks_a login');
  await runOn(database.url, 'create role bookmarks_b nologin');
  rotation = await startRotation(database.nodes.map(({ url }) => url));
});

afterEach(async () => {
  for (const role of ['bookmarks_a', 'bookmarks_b']) await runOn(database.url, `drop role if exists ${role}`);
  await database.drop();
});

/** Returns each node's login roles and stored passwords. */
const readRoles = () =>
  Promise.all(
    database.nodes.map(({ url }) =>
      runOn<{ login: string; kept: string }>(
        url,
        `select
          string_agg(rolname, ' ' order by rolname) filter (where rolcanlogin) as login,
          string_agg(rolpassword, ' ' order by rolname) as kept
        from pg_authid
        where rolname in ('bookmarks_a', 'bookmarks_b')`,
      ).then(([row]) => row!),
    ),
  );

test('the password is rotated on every node, in both directions', async () => {
  for (const role of ['bookmarks_b', 'bookmarks_a']) {
    expect(await rotation.run()).toMatchObject({ code: 0 });
    const [first, ...others] = await readRoles();
    expect(first).toEqual({ login: role, kept: expect.stringMatching(/^SCRAM-SHA-256\$4096:\S+$/) });
    expect(others).toEqual(others.map(() => first));
    expect(await rotation.reach()).toEqual([role]);
  }
});

test('an unreachable node is named, the serving role keeps working, and a second run completes the rotation', async () => {
  const away = database.nodes.at(-1)!;
  await withNodeClosed(away, async () => {
    const { code, output } = await rotation.run();
    expect([code, output]).toEqual([1, expect.stringContaining(`rotate: ${away.host}:${away.port}: `)]);
  });
  expect(await rotation.reach()).toEqual(['bookmarks_a']);
  expect(rotation.readSecret('pgbouncer/userlist.txt')).not.toContain('bookmarks_b');
  expect(await rotation.run()).toMatchObject({ code: 0 });
  expect((await readRoles()).map(({ login }) => login)).toEqual(database.nodes.map(() => 'bookmarks_b'));
});
