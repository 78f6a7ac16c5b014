/**
 * The commands of docs/operation.md and docs/runbook.md that the rehearsal does not run. The value of a command is the
 * test that covers the command (`file.test.ts › name`), or the reason why no test can run it. test/documents.test.ts
 * checks that the two documents contain these commands, and that the rehearsal runs all their other commands.
 */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm start': 'first-session.test.ts › the first session of the README works as described',
  'node src/main.ts api': 'the rehearsal starts the pods of api with these arguments',
  'npm run --silent admin -- …': 'admin.test.ts',
  'npm ci': '.ci/run runs this command',
  'npm run k8s:check': '.ci/run runs this command',
  'npm run test:image': '.ci/run runs this command',
  'DATABASE_URL="$MIGRATE_DATABASE_URL" REDIS_URL="$REDIS_URL" npm run --silent admin -- …': 'admin.test.ts',
  'docker tag bookmark-service:1.0.0 registry.example.org/bookmark-service:1.0.0': 'needs a container engine',
  'docker push registry.example.org/bookmark-service:1.0.0': 'needs a registry of images',
  'kubectl -n bookmarks create secret docker-registry registry --docker-server=… --docker-username=… --docker-password=…':
    'needs a registry of images',
  'kubectl -n bookmarks scale deployment/api deployment/worker --replicas=0':
    'not needed: the rehearsal stops its clients before it restores, so nobody writes',
  'kubectl -n bookmarks scale deployment/api --replicas=3':
    'not needed: the rehearsal does not scale the Deployment to 0 before it restores',
  'alter role bookmarks_a nologin password null':
    'long/k8s-rotate.test.ts: k8s/rotate.sh sends the same statement to Postgres',
  'kubectl -n bookmarks describe hpa api': 'needs a cluster with an autoscaler',
  'docker build --build-arg VERSION=1.0.0 --build-arg REVISION=$(git rev-parse HEAD) -t bookmark-service:1.0.0 .':
    'needs a container engine; npm run test:image builds the same Dockerfile with buildah',
  'kubectl apply -k k8s/overlays/local':
    'needs a cluster that can pull images; npm run k8s:check builds and checks this overlay',
  'kubectl -n bookmarks port-forward service/api 3000:80': 'needs a cluster',
  'kubectl -n bookmarks exec deploy/api -- node -e "fetch(\'http://127.0.0.1:3000/readyz\').then(async (r) => console.log(r.status, await r.text()))"':
    'the pods of the rehearsal listen on other ports; the rehearsal waits for /readyz of each pod',
  'kubectl apply -f k8s/backups/reader.yaml': 'needs a cluster with volumes; k8s.test.ts checks the pod',
  'kubectl -n bookmarks create job --from=cronjob/backup backup-now':
    'backup-schedule.test.ts › a scheduled backup is made by the reading role and verified, and the oldest ones are removed',
  'kubectl -n bookmarks wait --for=condition=complete --timeout=1h job/backup-now': 'needs a cluster',
  'kubectl -n bookmarks logs job/backup-now': 'needs a cluster',
  'kubectl -n bookmarks logs job/…':
    'needs a cluster; the rehearsal reads the log of the migration with the same command',
  'kubectl -n bookmarks get jobs': 'needs a cluster',
  'kubectl -n bookmarks wait --for=condition=ready --timeout=5m pod/backup-reader': 'needs a cluster',
  'kubectl -n bookmarks exec backup-reader -- ls -l /backups': 'needs a cluster',
  'kubectl -n bookmarks cp backup-reader:/backups/… bookmarks.dump': 'needs a cluster',
  'kubectl -n bookmarks delete pod backup-reader': 'needs a cluster',
  'docker build -t bookmark-service:local .': 'needs a container engine',
  'kubectl -n bookmarks rollout status deployment/api --timeout=5m': 'needs a cluster on a laptop',
  'kubectl -n bookmarks get hpa api': 'needs a cluster with an autoscaler',
  'kubectl -n bookmarks rollout restart deployment/api deployment/worker deployment/pgbouncer':
    'k8s/rotate.sh restarts these Deployments one after another',
  'kubectl -n bookmarks rollout restart deployment/pgbouncer': 'k8s/rotate.sh runs this command',
  'admin user show --email ann@example.org': 'admin.test.ts',
  'admin user suspend --email ann@example.org': 'suspension.test.ts',
  'admin user resume --email ann@example.org': 'suspension.test.ts',
  'admin user export --email ann@example.org': 'admin.test.ts',
  'admin token revoke --all --email ann@example.org': 'admin.test.ts',
  'admin audit list': 'admin.test.ts',
  [`kubectl -n bookmarks logs --selector=app.kubernetes.io/component=api --tail=20000 | grep -o '"user":[0-9]*' | sort | uniq -c | sort -rn | head`]:
    'the rehearsal reads the same log, but not with this pipe',
  [`kubectl -n bookmarks logs --selector=app.kubernetes.io/component=api --tail=20000 | grep -E '"ms":[0-9]{4}'`]:
    'the rehearsal reads the same log, but not with this pipe',
  [`psql "$ADMIN_DATABASE_URL" --command="alter system set log_min_duration_statement = '1s'" --command="alter system set log_parameter_max_length = 20" --command="select pg_reload_conf()"`]:
    'needs a superuser, and the administrator of the rehearsal is none',
  'psql "$ADMIN_DATABASE_URL" --command="alter system reset log_min_duration_statement" --command="alter system reset log_parameter_max_length" --command="select pg_reload_conf()"':
    'needs a superuser, and the administrator of the rehearsal is none',
  'k8s/release.sh --canary 10':
    'k8s-release.test.ts › a canary gets requests once its pods are ready, and the other pods stay unchanged',
  'k8s/release.sh --compare': 'k8s-release.test.ts › the canary is %s, and the comparison exits with code %i',
  'k8s/release.sh --abort':
    'k8s-release.test.ts › both a release and --abort remove the canary, and remove its route first',
  'kubectl kustomize': 'npm run k8s:check runs this command, and so does k8s/release.sh in the rehearsal',
};
