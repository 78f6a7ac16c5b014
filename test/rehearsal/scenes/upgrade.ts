import { schemaOf } from '../releases.ts';
import { failuresOf, require, type Stage, setTag, TAGS, versionsOf } from '../stage.ts';

/**
 * Follows the sections *Upgrade* and *Roll back* of docs/operation.md while clients send requests. The first upgrade
 * has a migration that fails.
 */

const readSchema = ({ operator, postgres }: Stage): string =>
  operator.sql(postgres.urlOfAdmin('bookmarks'), 'select max(version) from schema_migrations');

/** Requires that no client noticed anything, not even a 503 that was followed by a successful retry. */
const requireNoFailure = (stage: Stage, during: string): void => {
  const failures = failuresOf(stage, during);
  const retried = stage.traffic.retried.get(during) ?? 0;
  require(retried === 0, `no request needs a retry in the ${during}, but ${retried} did`);
  require(failures.length ===
    0, `no request fails in the ${during}, but:\n${failures.slice(0, 10).join('\n')}`);
};

/** The runbook's queries about Postgres's disk and replication. */
const STATE_OF_POSTGRES = [
  `psql "$ADMIN_DATABASE_URL" --command='select slot_name, active, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) from pg_replication_slots'`,
  `psql "$ADMIN_DATABASE_URL" --command='select pg_is_in_recovery(), now() - pg_last_xact_replay_timestamp() as behind'`,
];

/**
 * Starts an upgrade whose migration fails. Checks that the migration's changes are rolled back, that the release stops,
 * and that the pods stay unchanged.
 */
async function failToUpgrade(stage: Stage): Promise<void> {
  const { operator, images } = stage;
  setTag(operator, TAGS.broken);
  const { code, output } = await operator.run('k8s/release.sh');
  require(code === 1 && output.includes('the migration is Failed'), `a release that stops, got ${output}`);
  const log = await operator.must('kubectl -n bookmarks logs job/migrate');
  require(log.includes('division by zero'), `a log that says why, got ${log}`);
  await operator.must('kubectl -n bookmarks describe pods');
  await operator.must('kubectl -n bookmarks logs --previous deployment/api');
  await operator.must(
    'kubectl -n bookmarks logs --selector=app.kubernetes.io/component=api --tail=200 --prefix',
  );
  await operator.must(`psql "$ADMIN_DATABASE_URL" --command='select 1'`);
  for (const command of STATE_OF_POSTGRES) await operator.must(command);
  const atWork = await operator.must(
    `psql "$ADMIN_DATABASE_URL" --command="select pid, usename, wait_event_type, now() - xact_start as open_for, left(query, 60) as query from pg_stat_activity where datname = 'bookmarks' order by xact_start"`,
  );
  require(atWork.includes('bookmarks_a'), `the statements of the role that serves, got ${atWork}`);
  await operator.must('kubectl -n bookmarks rollout status deployment/pgbouncer');
  const pods = await operator.must('kubectl -n bookmarks get pods');
  require(!pods.includes('NotReady'), `pods that serve, got ${pods}`);
  require(Number(readSchema(stage)) === schemaOf(images, TAGS.first), 'the schema as it was');
  require(versionsOf(stage, 'api').join() === TAGS.first, 'the pods as they were');
  stage.note('a migration that fails: the release ends with 1, schema and pods as they were');
}

/** Upgrades to a release with a migration and a changed function. */
export async function upgrade(stage: Stage): Promise<void> {
  const { operator, images, cluster } = stage;
  await failToUpgrade(stage);
  setTag(operator, TAGS.second);
  await operator.must('k8s/release.sh');
  await cluster.untilQuiet();
  require(Number(readSchema(stage)) === schemaOf(images, TAGS.second), 'the newer schema');
  for (const name of ['api', 'worker'])
    require(versionsOf(stage, name).join() === TAGS.second, `every ${name} of the newer release`);
  requireNoFailure(stage, 'upgrade');
}

const readAdds = ({ operator, postgres }: Stage): number =>
  Number(operator.sql(postgres.urlOfAdmin('bookmarks'), 'select sum(adds_seen) from accounts'));

const WAYS_BACK = {
  api: {
    list: 'kubectl -n bookmarks rollout history deployment/api',
    show: 'kubectl -n bookmarks rollout history deployment/api --revision=…',
    undo: 'kubectl -n bookmarks rollout undo deployment/api --to-revision=…',
  },
  worker: {
    list: 'kubectl -n bookmarks rollout history deployment/worker',
    show: 'kubectl -n bookmarks rollout history deployment/worker --revision=…',
    undo: 'kubectl -n bookmarks rollout undo deployment/worker --to-revision=…',
  },
} as const;

/** Returns the newest revision whose image has this tag. */
async function findRevision(
  { operator }: Stage,
  { list, show }: Record<'list' | 'show', string>,
  tag: string,
): Promise<string> {
  const listed = await operator.must(list);
  for (const [, revision] of [...listed.matchAll(/^(\d+) /gm)].reverse())
    if ((await operator.must(show, revision!)).includes(`:${tag}\n`)) return revision!;
  throw new Error(`no revision of ${tag}:\n${listed}`);
}

/**
 * Rolls back to the previous release. The database keeps the newer schema, whose functions then serve the older code.
 */
export async function rollBack(stage: Stage): Promise<void> {
  const { operator, images, cluster, traffic } = stage;
  for (const commands of Object.values(WAYS_BACK)) {
    const revision = await findRevision(stage, commands, TAGS.first);
    await operator.must(commands.undo, revision);
  }
  for (const name of Object.keys(WAYS_BACK)) {
    await cluster.deployments.get(name)!.untilRolledOut(120_000);
    require(versionsOf(stage, name).join() === TAGS.first, `every ${name} of the older release`);
  }
  await cluster.untilQuiet();
  require(Number(readSchema(stage)) === schemaOf(images, TAGS.second), 'the newer schema still');
  const before = readAdds(stage);
  const served = traffic.served.get('roll back') ?? 0;
  while ((traffic.served.get('roll back') ?? 0) < served + 20)
    await new Promise((done) => setTimeout(done, 100));
  require(readAdds(stage) > before, "adds of the older code through the newer release's function");
  requireNoFailure(stage, 'roll back');
}
