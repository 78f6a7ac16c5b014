import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { BookmarkClient, MemoryStore } from '../../src/client/index.ts';
import type { Bookmark } from '../../src/domain/resources.ts';
import { migrate } from '../../src/store/schema/migrations.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { makeFolder } from '../support/folders.ts';
import { findFaults } from '../support/invariants.ts';
import { provide } from '../support/programs.ts';
import type { Replica } from '../support/replica.ts';
import { runDir } from '../support/run.ts';
import { type SystemPostgres, startSystemPostgres } from '../support/system-postgres.ts';
import { until } from '../support/until.ts';
import type { Principal } from '../support/users.ts';

/** Backs up a running service and restores it, with the scripts that docs/operation.md names. */

const scriptOf = (name: string): string => fileURLToPath(new URL(`../../k8s/${name}`, import.meta.url));
const BACKUP = scriptOf('backups/backup.sh');
const RESTORE = scriptOf('restore.sh');

/** Sends a request that must succeed. Returns the body of the response. */
async function send({ origin, post }: Replica, { token }: Principal, path: string, body: object) {
  const response = await post(path, body, token);
  expect(response, `${path} of ${origin}`).toMatchObject({ status: 200 });
  return response.body;
}

/** A client that adds, edits and deletes bookmarks of its user in turn. */
interface Writer {
  user: Principal;
  /** The user's bookmarks at first (none), and after each acknowledged write. */
  states: Bookmark[][];
  /** Resolves after this many more acknowledged writes. */
  writeMore(writes: number): Promise<void>;
  stop(): Promise<void>;
}

function startWriter(replica: Replica, user: Principal): Writer {
  const states: Bookmark[][] = [[]];
  let isStopped = false;
  const writing = (async () => {
    for (let turn = 0; !isStopped; turn += 1) {
      states.push(await writeOne(replica, user, states.at(-1)!, turn));
    }
  })();
  // If a write fails, `writeMore` and `stop` pass the error on. Without this line, the error would also count as
  // unhandled.
  writing.catch(() => {});
  return {
    user,
    states,
    writeMore: async (writes) => {
      const wanted = states.length + writes;
      await Promise.race([writing, until(() => states.length >= wanted)]);
    },
    stop: () => {
      isStopped = true;
      return writing;
    },
  };
}

/** Writes once. Returns the user's bookmarks after the write. */
async function writeOne(
  replica: Replica,
  user: Principal,
  held: Bookmark[],
  turn: number,
): Promise<Bookmark[]> {
  const [oldest] = held;
  const texts = { title: `Title ${turn}`, tags: [`tag ${turn % 7}`, `Tag ${turn % 3}`] };
  if (oldest && turn % 5 === 3) {
    const edited = await send(replica, user, '/bookmarks/edit', { id: oldest.id, ...texts });
    return [{ ...oldest, ...edited }, ...held.slice(1)];
  }
  if (oldest && turn % 5 === 4) {
    await send(replica, user, '/bookmarks/delete', { id: oldest.id });
    return held.slice(1);
  }
  const url = `https://example.org/${user.id}/${turn}`;
  return [...held, await send(replica, user, '/bookmarks/add', { url, ...texts })];
}

const lastId = (bookmarks: readonly Bookmark[]): number => bookmarks.at(-1)?.id ?? 0;

/** Brings a mirror up to date. */
async function catchUp({ origin }: Replica, { token }: Principal, store: MemoryStore): Promise<void> {
  const client = new BookmarkClient({ baseUrl: `${origin}/api/v1`, token });
  for await (const _ of client.mirror({ store, follow: false }));
}

/** A dump that was taken during writes, and what had been acknowledged before the dump began. */
interface Backup {
  /**
   * The users who wrote, with the states of their bookmarks. `mirror` has followed all writes of its user, including
   * those after the dump.
   */
  writers: { user: Principal; states: Bookmark[][]; acknowledged: number; mirror: MemoryStore }[];
  /**
   * A user whose empty import replaced the collection. The import waited for a lock during the dump, and completed
   * later. `bookmarks` is the collection before the import.
   */
  importer: { user: Principal; bookmarks: Bookmark[] };
  lastIdEver: number;
}

/**
 * Takes a dump while clients write. After the dump has taken its snapshot, a lock delays the dump, so that some writes
 * certainly happen while it runs.
 */
async function backUpUnderWrites(postgres: SystemPostgres, fleet: Fleet, file: string): Promise<Backup> {
  const replica = await fleet.start('all', { IMPORT_INLINE_BYTES: 0 });
  const users = await Promise.all([fleet.user(), fleet.user(), fleet.user()]);
  const importer = await fleet.user();
  const entries = Array.from({ length: 500 }, (_, n) => ({ url: `https://example.org/import/${n}` }));
  await send(replica, importer, '/import', { bookmarks: entries });
  const { bookmarks } = await send(replica, importer, '/export', {});
  const writers = users.map((user) => startWriter(replica, user));
  await Promise.all(writers.map((writer) => writer.writeMore(20)));

  await using account = await fleet.holdAccount(importer);
  const replaced = send(replica, importer, '/import', { bookmarks: [], mode: 'replace' });
  await fleet.untilBlocked('import_bookmarks');

  await using table = await fleet.hold('lock table invites in access exclusive mode');
  const acknowledged = writers.map(({ states }) => states.length - 1);
  const dumped = postgres.runScript(BACKUP, fleet.databaseUrl, [file]);
  await Promise.race([dumped, fleet.untilBlocked('LOCK TABLE')]);
  await Promise.all(writers.map((writer) => writer.writeMore(20)));
  await table.release();
  await dumped;
  await account.release();
  await replaced;

  await Promise.all(writers.map((writer) => writer.writeMore(20)));
  await Promise.all(writers.map((writer) => writer.stop()));
  const lastIdEver = Math.max(...writers.flatMap(({ states }) => states.map(lastId)));
  const mirrored = writers.map(async ({ user, states }, index) => {
    const mirror = new MemoryStore();
    await catchUp(replica, user, mirror);
    expect([...mirror.bookmarks()]).toEqual(states.at(-1));
    return { user, states, acknowledged: acknowledged[index]!, mirror };
  });
  return {
    writers: await Promise.all(mirrored),
    importer: { user: importer, bookmarks },
    lastIdEver,
  };
}

// Installing the package may take a minute or two.
beforeAll(() => provide('postgresql'));

test('a backup of a running service contains everything acknowledged before it, and no partial writes', async () => {
  await using postgres = await startSystemPostgres();
  const file = join(makeFolder('backup', runDir()), 'bookmarks.dump');
  const source = await postgres.createDatabase('source');
  await migrate({ url: source });
  await using before = await openFleet({ databaseUrl: source });
  const { writers, importer, lastIdEver } = await backUpUnderWrites(postgres, before, file);

  const restored = await postgres.createDatabase('restored');
  await postgres.runScript(RESTORE, restored, [file]);
  expect(await findFaults(restored)).toEqual([]);
  await using after = await openFleet({ databaseUrl: restored });
  const replica = await after.start('all');
  // The import that was in progress during the dump has ended without changing anything.
  await until(async () => (await after.sql`select from imports where state = 'queued'`).length === 0);
  expect((await send(replica, importer.user, '/export', {})).bookmarks).toEqual(importer.bookmarks);

  for (const { user, states, acknowledged, mirror } of writers) {
    const { bookmarks } = await send(replica, user, '/export', {});
    const restoredState = states.findIndex((state) => isDeepStrictEqual(state, bookmarks));
    expect(restoredState).toBeGreaterThanOrEqual(acknowledged);
    // Each user's client continued to write while the dump waited.
    expect(restoredState).toBeLessThan(states.length - 20);

    const stored = bookmarks[5].id;
    const page = await send(replica, user, '/bookmarks/sync', { cursor: stored, limit: 100 });
    expect(page.bookmarks).toEqual(bookmarks.slice(6, 106));

    // Before the restore, this client had received bookmarks that the dump does not contain. It still receives all
    // bookmarks that are added after the restore.
    const ahead = lastId(states.at(-1)!);
    const idle = await send(replica, user, '/bookmarks/sync', { cursor: ahead });
    expect(idle).toMatchObject({ bookmarks: [], cursor: ahead });
    const added = await send(replica, user, '/bookmarks/add', { url: 'https://example.org/after' });
    expect(added.id).toBeGreaterThan(lastIdEver);
    const next = await send(replica, user, '/bookmarks/sync', { cursor: ahead });
    expect(next).toMatchObject({ bookmarks: [added], cursor: added.id });
    // The mirror removes what the dump did not contain.
    await catchUp(replica, user, mirror);
    expect([...mirror.bookmarks()]).toEqual([...bookmarks, added]);
  }
  expect(await findFaults(restored)).toEqual([]);
});
