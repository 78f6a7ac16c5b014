import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { CA_FILE, type ManagedPostgres } from '../servers.ts';
import { fillInSecrets, nameHost, require, type Stage, setTag, TAGS, versionsOf } from '../stage.ts';

/** Follows the section *Install* of docs/operation.md, and the operator's first steps. */

/** Runs `administrator.sql` (step 2). */
export async function makeRoles({ operator, passwords }: Stage, postgres: ManagedPostgres): Promise<void> {
  operator.variables.ADMIN_DATABASE_URL = postgres.urlOfAdmin();
  await operator.must(
    'OWNER_PASSWORD=… SERVING_PASSWORD=… psql "$ADMIN_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/administrator.sql',
    passwords.owner,
    passwords.serving,
  );
}

/** Creates the Redis user with exactly the rights in the document (step 3). */
async function makeRedisUser({ operator, redis, passwords }: Stage): Promise<void> {
  const admin = new Redis(redis.adminUrl, { tls: { ca: readFileSync(CA_FILE) } });
  try {
    for (const line of [
      'ACL SETUSER bookmarks reset on >PASSWORD ~bookmarks:* ~{bookmarks}:* ~{bookmarks:pending}:* &bookmarks:wakes* -@all +hello +client|setname +eval +evalsha +time +multi +exec +get +set +incrby +expire +pttl +publish +subscribe +@hash +@list +@set +@sortedset +@stream +del +exists +getdel +incr +persist +pexpire',
      'ACL SAVE',
    ]) {
      const [name, ...args] = operator.read(line).replace('PASSWORD', passwords.redis).split(' ');
      await admin.call(name!, ...args);
    }
  } finally {
    admin.disconnect();
  }
}

/** Installs the service. Resolves when its pods serve. */
export async function install(stage: Stage): Promise<void> {
  const { operator, postgres, passwords, cluster } = stage;
  await makeRoles(stage, postgres);
  operator.variables.MIGRATE_DATABASE_URL = postgres.urlOf('bookmarks_owner', passwords.owner, 'bookmarks');
  await operator.must('psql "$MIGRATE_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/roles.sql');
  await makeRedisUser(stage);
  nameHost(operator, 'host=postgres.example.org port=5432', postgres);
  fillInSecrets(stage, readFileSync(CA_FILE, 'utf8'));
  setTag(operator, TAGS.first);
  await operator.must('kubectl apply -f k8s/base/namespace.yaml');
  await operator.must('kubectl apply -f k8s/overlays/production/secrets.yaml');
  const released = await operator.must('k8s/release.sh');
  require(released.endsWith('release: done\n'), `a release that says that it is done, got ${released}`);
  await operator.must(
    'kubectl -n bookmarks exec deploy/api -- node src/main.ts admin invite create --email ann@example.org',
  );
  const pods = [...cluster.deployments.values()].map(({ name, pods }) => `${name} ${pods.length}`);
  stage.note(`pods: ${pods.sort().join(', ')}; api ${versionsOf(stage, 'api')}`);
}
