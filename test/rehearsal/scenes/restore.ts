import { findFaults } from '../../support/invariants.ts';
import { startManagedPostgres, withoutVerification } from '../servers.ts';
import { nameHost, patchSecret, readConnection, require, type Stage } from '../stage.ts';
import { makeRoles } from './install.ts';

/**
 * Follows the section *Back up and restore* of docs/operation.md: dumps the running service, and restores the dump into
 * another Postgres server.
 */

/** Maps a user's id to the urls that the service had acknowledged to the user before the dump began. */
type Acknowledged = Map<number, string[]>;

/** Dumps the database with the backup role, while clients send requests. */
export async function backUp({ operator, traffic, postgres, passwords }: Stage): Promise<Acknowledged> {
  const line = operator.read("alter role bookmarks_backup login password '…'");
  operator.sql(postgres.urlOfAdmin(), line.replace('…', passwords.backup));
  operator.variables.BACKUP_DATABASE_URL = postgres.urlOf('bookmarks_backup', passwords.backup, 'bookmarks');
  const acknowledged = new Map(
    traffic.journals.map(({ user, acknowledged }) => [user.id, acknowledged.slice()]),
  );
  await operator.must('DATABASE_URL="$BACKUP_DATABASE_URL" k8s/backups/backup.sh bookmarks.dump');
  return acknowledged;
}

/** Creates the serving role on the new server, with the name and the password that are in the Secret. */
async function makeServingRole(stage: Stage, urlOfAdmin: string): Promise<void> {
  const { username, password } = new URL(await readConnection(stage, 'DATABASE_URL'));
  const line = stage.operator.read("alter role bookmarks_b login password '…'");
  stage.operator.sql(urlOfAdmin, line.replace('bookmarks_b', username).replace('…', password));
}

/** Restores the dump into a new Postgres server, and makes the service use that server. */
export async function restore(stage: Stage, acknowledged: Acknowledged, connections: number): Promise<void> {
  const { operator, postgres: lost, passwords, traffic, cluster, note } = stage;
  await traffic.stop();
  const postgres = cluster.keep(await startManagedPostgres(connections));
  await makeRoles(stage, postgres);
  await makeServingRole(stage, postgres.urlOfAdmin());
  operator.variables.NEW_DATABASE_URL = postgres.urlOf('bookmarks_owner', passwords.owner, 'bookmarks');
  await operator.must('DATABASE_URL="$NEW_DATABASE_URL" k8s/restore.sh bookmarks.dump');
  await lost[Symbol.asyncDispose]();

  nameHost(operator, `host=127.0.0.1 port=${lost.port}`, postgres);
  await patchSecret(stage, 'MIGRATE_DATABASE_URL', (url) =>
    url.replace(`:${lost.port}/`, `:${postgres.port}/`),
  );
  await operator.must('k8s/release.sh');
  await cluster.untilQuiet();

  let held = 0;
  for (const journal of traffic.journals) {
    const wanted = acknowledged.get(journal.user.id)!;
    const lostUrls = await traffic.findLost(journal, wanted);
    require(lostUrls.length ===
      0, `all that was acknowledged before the dump, without ${lostUrls.length}: ${lostUrls[0]}`);
    held += wanted.length;
  }
  require(held > 0, 'something acknowledged before the dump');
  note(`restored into a new cluster: all ${held} bookmarks that were acknowledged before the dump`);

  // Before the restore, the clients had received bookmarks that the dump does not contain. They must still receive all
  // bookmarks that are added after the restore.
  for (const journal of traffic.journals) journal.acknowledged.length = 0;
  const before = traffic.failures.length;
  traffic.start();
  const served = traffic.served.get('restore') ?? 0;
  while ((traffic.served.get('restore') ?? 0) < served + 60)
    await new Promise((done) => setTimeout(done, 100));
  await traffic.stop();
  for (const journal of traffic.journals) {
    const lostUrls = await traffic.findLost(journal, journal.acknowledged);
    require(lostUrls.length === 0, `no acknowledged bookmark lost after the restore, but ${lostUrls[0]}`);
  }
  require(traffic.failures.length ===
    before, `no request failed after it, but ${traffic.failures.at(-1)?.what}`);
  const faults = await findFaults(withoutVerification(postgres.urlOfAdmin('bookmarks')));
  require(faults.length === 0, `a sound database, but ${faults[0]}`);
}
