#!/usr/bin/env bash
# Installs or upgrades the service. Without --yes, the script shows the cluster and asks before it begins:
#   k8s/release.sh [--yes] [overlay]               by default k8s/overlays/production
#   k8s/release.sh [--yes] --canary 10 [overlay]   send 10 % of the requests to the new version
#   k8s/release.sh --compare [overlay]             compare both versions for 5 minutes; exit 1 if the new one is worse
#   k8s/release.sh [--yes] --abort [overlay]       return to the old version for everybody
# In the first form, the script releases the new version to everybody and ends the canary, if there is one.
# The script migrates the schema first, then replaces the pods. If the migration or a rollout fails, the script prints
# the reason and exits with 1. You can run the script again.
set -euo pipefail
folder=$(dirname "$0")
overlay="$folder/overlays/production"
mode=release weight=100 is_sure=''
while [ $# -gt 0 ]; do
  case $1 in
    --yes) is_sure=yes ;;
    --canary) mode=canary weight=${2:?of 100} && shift ;;
    --compare | --abort) mode=${1#--} ;;
    --*) echo "release: unknown option $1" >&2 && exit 2 ;;
    *) overlay=$1 ;;
  esac
  shift
done
if ! [[ $weight =~ ^[0-9]{1,3}$ ]] || [ "$weight" -lt 1 ] || { [ $mode = canary ] && [ "$weight" -gt 50 ]; }; then
  echo 'release: --canary takes a percentage from 1 to 50' >&2
  exit 2
fi
compare_seconds=${COMPARE_SECONDS:-300}
migration_limit_seconds=${MIGRATION_LIMIT_SECONDS:-3700} # above the Job's own activeDeadlineSeconds
roll_out_limit=${ROLL_OUT_LIMIT:-20m}

manifests=$(mktemp)
trap 'rm -f "$manifests"' EXIT
kubectl kustomize "$overlay" >"$manifests"
namespace=$(sed -n '/^kind: Namespace$/,/^---$/s/^  name: //p' "$manifests" | head -n 1)
in_namespace() { kubectl --namespace "$namespace" "$@"; }

if [ $mode = compare ]; then
  exec node "$folder/canary.mjs" compare "$namespace" "$compare_seconds"
fi

echo "release: $mode of $(sed -n 's/^ *image: \(.*bookmark-service:.*\)/\1/p' "$manifests" | sort -u) from $overlay"
echo "release: to namespace $namespace of context $(kubectl config current-context)"
if [ -z "$is_sure" ]; then
  echo 'release: continue? (yes)'
  read -r answer || answer=''
  if [ "$answer" != yes ]; then
    echo 'release: nothing was changed' >&2
    exit 1
  fi
fi

# Removes the canary, if there is one. Changes the route before it deletes the canary's pods, so that no requests go to
# pods that end.
remove_canary() {
  if [ -z "$(in_namespace get deployment api-canary --ignore-not-found --output name)" ]; then return; fi
  node "$folder/canary.mjs" route "$manifests" 0 | kubectl apply --filename -
  in_namespace delete deployment/api-canary service/api-canary poddisruptionbudget/api-canary --ignore-not-found
}

if [ $mode = abort ]; then
  remove_canary
  echo 'release: the canary is removed; its migration stays, and the old version works with it'
  exit 0
fi

# Prints how the migration Job has ended: Complete or Failed. Prints nothing while it runs.
job_end() {
  in_namespace get job migrate --output 'jsonpath={.status.conditions[?(@.status=="True")].type}' |
    tr ' ' '\n' | grep -xE 'Complete|Failed' || true
}

# Prints why the migration's pod does not run yet, for example Unschedulable, ContainerCreating or ImagePullBackOff.
# Prints nothing if it runs.
waiting_reason() {
  in_namespace get pods --selector app.kubernetes.io/component=migrate --output \
    'jsonpath={.items[*].status.conditions[?(@.type=="PodScheduled")].reason} {.items[*].status.containerStatuses[*].state.waiting.reason}' |
    xargs || true
}

# If the pod waits for one of these reasons, it can never start, because its image or its settings are wrong.
cannot_start='ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainerConfigError'

# Prints the Deployment to roll back. For api or worker, prints both: they have the same image, so they are rolled back
# together.
name_with_partner() {
  case $1 in
    api | worker) echo deployment/api deployment/worker ;;
    *) echo "deployment/$1" ;;
  esac
}

await_roll_outs() {
  local deployment
  for deployment in $(in_namespace get deployments "$@" --output 'jsonpath={.items[*].metadata.name}'); do
    if ! in_namespace rollout status "deployment/$deployment" --timeout="$roll_out_limit"; then
      echo "release: the roll-out of deployment/$deployment failed; to go back, set the tag of the release before and run this" >&2
      echo "script again. If nothing else has changed since, you can instead run:" >&2
      echo "  kubectl --namespace $namespace rollout undo $(name_with_partner "$deployment")" >&2
      exit 1
    fi
  done
}

echo "== check"
# If the cluster cannot accept an object (an operator is missing, or the API is old), the script reports that here,
# before it changes anything. The check leaves out the migration, because an existing Job cannot be changed.
if ! kubectl apply --dry-run=server --filename "$manifests" --selector 'app.kubernetes.io/component notin (migrate)' >/dev/null; then
  echo 'release: the cluster refuses these objects; nothing was changed' >&2
  exit 1
fi

echo "== migrate"
# Deletes the previous release's Job and the Job's pods, before this release creates its own Job.
in_namespace delete job migrate --ignore-not-found --cascade=foreground --timeout=5m
# Applies everything except api, worker and PgBouncer, which wait until the schema is migrated. The migration does not
# need PgBouncer, because it connects directly to Postgres.
kubectl apply --filename "$manifests" \
  --selector 'app.kubernetes.io/component notin (api, worker),app.kubernetes.io/name notin (pgbouncer)'
give_up_at=$((SECONDS + migration_limit_seconds))
waits=''
until end=$(job_end) && [ -n "$end" ]; do
  reason=$(waiting_reason)
  if [ -n "$reason" ] && [ "$reason" != "$waits" ]; then echo "its pod waits: $reason"; fi
  waits=$reason
  if grep -qwE "$cannot_start" <<<"$reason"; then
    end="stopped by $reason"
    break
  fi
  if [ $SECONDS -ge $give_up_at ]; then
    end="not finished after $migration_limit_seconds s"
    break
  fi
  sleep 1
done
in_namespace logs job/migrate --tail=100 || echo 'the migration left no log'
if [ "$end" != Complete ]; then
  echo "release: the migration is $end; the pods were not changed" >&2
  exit 1
fi

echo "== roll out"
# Applies PgBouncer before api and worker, because their pods exit if they cannot reach Postgres when they start.
kubectl apply --filename "$manifests" --selector 'app.kubernetes.io/component notin (api, worker)'
await_roll_outs --selector app.kubernetes.io/name=pgbouncer
if [ $mode = canary ]; then
  serving=$(in_namespace get deployment api --output 'jsonpath={.status.readyReplicas}')
  pods=$(((${serving:-1} * weight + 99) / 100))
  node "$folder/canary.mjs" objects "$manifests" "$pods" | kubectl apply --filename -
  # The route sends requests to the canary only after the canary's pods are ready.
  if ! in_namespace rollout status deployment/api-canary --timeout="$roll_out_limit"; then
    echo 'release: the roll-out of the canary failed, and it gets no requests; k8s/release.sh --abort removes it' >&2
    exit 1
  fi
  node "$folder/canary.mjs" route "$manifests" "$weight" | kubectl apply --filename -
  echo "release: the canary serves $weight % of the requests; next, run --compare, and then --abort, or a release without options"
  exit 0
fi
kubectl apply --filename "$manifests"
await_roll_outs
remove_canary
echo 'release: done'
