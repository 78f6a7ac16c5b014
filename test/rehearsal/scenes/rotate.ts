import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { CA_FILE } from '../servers.ts';
import { failuresOf, patchSecret, readConnection, require, type Stage } from '../stage.ts';

/**
 * Follows the section *Rotate secrets* of docs/operation.md while clients send requests. Replaces the serving role, the
 * password of the migrating role, and the password of Redis.
 */

const NEW_PASSWORD = 'rotatedPassword';

async function rotateServing({ operator, cluster, postgres }: Stage): Promise<void> {
  const output = await operator.must('ADMIN_DATABASE_URL=… k8s/rotate.sh', postgres.urlOfAdmin());
  require(output.includes('rotate: bookmarks_b serves'), 'the other role serving');
  await cluster.untilQuiet();
  const atWork = operator.sql(
    postgres.urlOfAdmin(),
    "select string_agg(distinct usename, ' ') from pg_stat_activity where usename like 'bookmarks%'",
  );
  require(atWork === 'bookmarks_b', `only bookmarks_b at work, got ${atWork}`);
}

/** Rotates the migrating role's password, and uses the new password in a release. */
async function rotateMigrating(stage: Stage): Promise<void> {
  const { operator, postgres, passwords } = stage;
  const alter = operator.read(`alter role bookmarks_owner password '…'`).replace('…', NEW_PASSWORD);
  operator.sql(postgres.urlOfAdmin(), alter);
  await patchSecret(stage, 'MIGRATE_DATABASE_URL', (url) => url.replace(passwords.owner, NEW_PASSWORD));
  passwords.owner = NEW_PASSWORD;
  operator.variables.MIGRATE_DATABASE_URL = postgres.urlOf('bookmarks_owner', NEW_PASSWORD, 'bookmarks');
  await operator.must('k8s/release.sh');
}

async function rotateRedis(stage: Stage): Promise<void> {
  const { operator, cluster, redis, passwords } = stage;
  const admin = new Redis(redis.adminUrl, { tls: { ca: readFileSync(CA_FILE) } });
  try {
    const call = (command: string, from: string, to: string) => {
      const [name, ...args] = operator.read(command).replace(from, to).split(' ');
      return admin.call(name!, ...args);
    };
    await call('ACL SETUSER bookmarks >new-password', 'new-password', NEW_PASSWORD);
    await patchSecret(stage, 'REDIS_URL', (url) => url.replace(passwords.redis, NEW_PASSWORD));
    await operator.must('kubectl -n bookmarks rollout restart deployment/api deployment/worker');
    await operator.must('kubectl -n bookmarks rollout status deployment/api --timeout=20m');
    await cluster.deployments.get('worker')!.untilRolledOut(120_000);
    await cluster.untilQuiet();
    await call('ACL SETUSER bookmarks <old-password', 'old-password', passwords.redis);
  } finally {
    admin.disconnect();
  }
  const url = await readConnection(stage, 'REDIS_URL');
  require(url.includes(NEW_PASSWORD), 'the new password of Redis in the Secret');
  for (const { origin, name } of cluster.deployments.get('api')!.pods) {
    const { redis: state } = (await (await fetch(`${origin}/readyz`)).json()) as { redis: string };
    require(state !== 'degraded', `${name} with Redis, got ${state}`);
  }
}

/** Rotates the secrets one after another. Checks that no request fails and that few need a retry. */
export async function rotate(stage: Stage): Promise<void> {
  const { traffic, note } = stage;
  await rotateServing(stage);
  await rotateMigrating(stage);
  await rotateRedis(stage);
  // While PgBouncer is replaced, a statement may lose its connection. In that case, the request gets 503, and succeeds
  // when the client retries.
  const failures = failuresOf(stage, 'rotate');
  const served = traffic.served.get('rotate') ?? 0;
  const retried = traffic.retried.get('rotate') ?? 0;
  note(`requests while secrets were rotated: ${served} served, ${retried} of them at a retry`);
  require(failures.length === 0, `no request fails while secrets are rotated, got ${failures[0]}`);
  require(retried * 20 < served, `19 of 20 requests served at once, got ${retried} of ${served} retried`);
}
