/**
 * Commands of docs/operation.md and docs/runbook.md that the rehearsal does not run. The value is the test that runs
 * the command (`file.test.ts › name`), or why no test can. test/documents.test.ts compares the list with the documents.
 */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm start': 'first-session.test.ts › the README is played from an empty folder to sync --follow',
  'node src/main.ts api': 'every pod of the rehearsal is started so',
  'npm run --silent admin -- …': 'admin.test.ts',
  'npm ci': '.ci/run runs it',
  'npm run k8s:check': '.ci/run runs it',
  'npm run test:image': '.ci/run runs it',
  'DATABASE_URL="$MIGRATE_DATABASE_URL" REDIS_URL="$REDIS_URL" npm run --silent admin -- …': 'admin.test.ts',
  'docker tag bookmark-service:1.0.0 registry.example.org/bookmark-service:1.0.0': 'needs a container engine',
  'docker push registry.example.org/bookmark-service:1.0.0': 'needs a registry of images',
  'kubectl -n bookmarks create secret docker-registry registry --docker-server=… --docker-username=… --docker-password=…':
    'needs a registry of images',
  'kubectl -n bookmarks scale deployment/api deployment/worker --replicas=0':
    'the rehearsal stops its clients, and restores where nobody else writes',
  'kubectl -n bookmarks scale deployment/api --replicas=3': 'as above',
  'alter role bookmarks_a nologin password null':
    'long/k8s-rotate.test.ts: k8s/rotate.sh says the same to Postgres',
  'kubectl -n bookmarks describe hpa api': 'needs a cluster with an autoscaler',
  'docker build --build-arg VERSION=1.0.0 --build-arg REVISION=$(git rev-parse HEAD) -t bookmark-service:1.0.0 .':
    'needs a container engine and a registry of images; npm run test:image builds the same file by buildah',
  'kubectl apply -k k8s/overlays/local':
    'needs a cluster that can pull images; k8s:check builds and checks it',
  'kubectl -n bookmarks port-forward service/api 3000:80': 'needs a cluster',
  'kubectl -n bookmarks exec deploy/api -- node -e "fetch(\'http://127.0.0.1:3000/readyz\').then(async (r) => console.log(r.status, await r.text()))"':
    'the pods of the rehearsal listen elsewhere; the rehearsal awaits /readyz of each',
  'kubectl apply -f k8s/backups/reader.yaml': 'needs a cluster with volumes; k8s.test.ts checks the pod',
  'kubectl -n bookmarks create job --from=cronjob/backup backup-now':
    'backup-schedule.test.ts › a scheduled backup is made as the role that reads, read through, and the oldest go',
  'kubectl -n bookmarks wait --for=condition=complete --timeout=1h job/backup-now': 'as above',
  'kubectl -n bookmarks logs job/backup-now': 'as above',
  'kubectl -n bookmarks logs job/…': 'the rehearsal reads the log of a migration so',
  'kubectl -n bookmarks get jobs': 'as above',
  'kubectl -n bookmarks wait --for=condition=ready --timeout=5m pod/backup-reader': 'needs a cluster',
  'kubectl -n bookmarks exec backup-reader -- ls -l /backups': 'needs a cluster',
  'kubectl -n bookmarks cp backup-reader:/backups/… bookmarks.dump': 'needs a cluster',
  'kubectl -n bookmarks delete pod backup-reader': 'needs a cluster',
  'docker build -t bookmark-service:local .': 'needs a container engine',
  'kubectl -n bookmarks rollout status deployment/api --timeout=5m': 'needs a laptop’s cluster',
  'kubectl -n bookmarks get hpa api': 'needs a cluster with an autoscaler',
  'kubectl -n bookmarks rollout restart deployment/api deployment/worker deployment/pgbouncer':
    'k8s/rotate.sh restarts the three, one by one',
  'kubectl -n bookmarks rollout restart deployment/pgbouncer': 'k8s/rotate.sh runs it',
  'admin user show --email ann@example.org': 'admin.test.ts',
  'admin user suspend --email ann@example.org': 'suspension.test.ts',
  'admin user resume --email ann@example.org': 'suspension.test.ts',
  'admin user export --email ann@example.org': 'admin.test.ts',
  'admin token revoke --all --email ann@example.org': 'admin.test.ts',
  'admin audit list': 'admin.test.ts',
  [`kubectl -n bookmarks logs --selector=app.kubernetes.io/component=api --tail=20000 | grep -o '"user":[0-9]*' | sort | uniq -c | sort -rn | head`]:
    'the rehearsal reads the same log, and pipes it nowhere',
  [`kubectl -n bookmarks logs --selector=app.kubernetes.io/component=api --tail=20000 | grep -E '"ms":[0-9]{4}'`]:
    'as above',
  [`psql "$ADMIN_DATABASE_URL" --command="alter system set log_min_duration_statement = '1s'" --command="alter system set log_parameter_max_length = 20" --command="select pg_reload_conf()"`]:
    'needs a superuser, which the administrator of the rehearsal is not',
  'psql "$ADMIN_DATABASE_URL" --command="alter system reset log_min_duration_statement" --command="alter system reset log_parameter_max_length" --command="select pg_reload_conf()"':
    'as above',
  'k8s/release.sh --canary 10':
    'k8s-release.test.ts › a canary gets requests when its pods serve, and the others are left as they were',
  'k8s/release.sh --compare': 'k8s-release.test.ts › the canary is %s, and the comparison exits with code %i',
  'k8s/release.sh --abort':
    'k8s-release.test.ts › both a release and --abort remove the canary, and remove its route first',
  'kubectl kustomize': 'k8s:check and the release of the rehearsal run it',
};
