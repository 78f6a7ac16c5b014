import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAdministratorLines } from '../../support/roles.ts';
import { CA_FILE, type ManagedPostgres } from '../servers.ts';
import { fillInSecrets, nameHost, type Stage, setTag, TAGS, versionsOf } from '../stage.ts';

/** *Install*, steps 1 to 4, and what an operator does first. */

/** The lines at the top of roles.sql, for the administrator, with the passwords of this place. */
export function makeRoles({ operator, passwords }: Stage, postgres: ManagedPostgres): void {
  const text = readFileSync(join(operator.checkout, 'k8s/database/roles.sql'), 'utf8');
  for (const line of readAdministratorLines(text)) {
    const password = line.includes('bookmarks_owner') ? passwords.owner : passwords.serving;
    operator.sql(postgres.urlOfAdmin(), line.replace('…', password));
  }
}

/** Brings the service from nothing to pods that serve. */
export async function install(stage: Stage): Promise<void> {
  const { operator, postgres, passwords, cluster } = stage;
  makeRoles(stage, postgres);
  operator.variables.MIGRATE_DATABASE_URL = postgres.urlOf('bookmarks_owner', passwords.owner, 'bookmarks');
  await operator.must('psql "$MIGRATE_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/roles.sql');
  nameHost(operator, 'host=postgres.example.org port=5432', postgres);
  fillInSecrets(stage, readFileSync(CA_FILE, 'utf8'));
  setTag(operator, TAGS.first);
  await operator.must('kubectl apply -f k8s/base/namespace.yaml');
  await operator.must('kubectl apply -f k8s/overlays/production/secrets.yaml');
  await operator.must('k8s/release.sh');
  const pods = [...cluster.deployments.values()].map(({ name, pods }) => `${name} ${pods.length}`);
  stage.note(`pods: ${pods.sort().join(', ')}; api ${versionsOf(stage, 'api')}`);
}
