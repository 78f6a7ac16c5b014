#!/usr/bin/env bash
# Installs or upgrades, after it has shown where and asked:
#   k8s/release.sh [--yes] [overlay]               by default k8s/overlays/production
#   k8s/release.sh [--yes] --canary 10 [overlay]   the new version beside the old one, for 10 % of the requests
#   k8s/release.sh --compare [overlay]             how both served in the next 5 minutes; ends with 1 if the canary is worse
#   k8s/release.sh [--yes] --abort [overlay]       the old version for everybody again
# A release without an option gives everybody the new version, and takes a canary away.
# The schema comes first, then the pods: where the migration fails, or a roll-out does not come on, it prints why, stops and ends
# with 1. It may be run again.
set -euo pipefail
folder=$(dirname "$0")
overlay="$folder/overlays/production"
mode=release weight=100 is_sure=''
while [ $# -gt 0 ]; do
  case $1 in
    --yes) is_sure=yes ;;
    --canary) mode=canary weight=${2:?of 100} && shift ;;
    --compare | --abort) mode=${1#--} ;;
    --*) echo "release: no option $1" >&2 && exit 2 ;;
    *) overlay=$1 ;;
  esac
  shift
done
if ! [[ $weight =~ ^[0-9]{1,3}$ ]] || [ "$weight" -lt 1 ] || { [ $mode = canary ] && [ "$weight" -gt 50 ]; }; then
  echo 'release: --canary takes a share from 1 to 50' >&2
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
  echo 'release: go on? (yes)'
  read -r answer || answer=''
  if [ "$answer" != yes ]; then
    echo 'release: nothing was changed' >&2
    exit 1
  fi
fi

# The route first, so that nobody is sent to pods that go.
remove_canary() {
  if [ -z "$(in_namespace get deployment api-canary --ignore-not-found --output name)" ]; then return; fi
  node "$folder/canary.mjs" route "$manifests" 0 | kubectl apply --filename -
  in_namespace delete deployment/api-canary service/api-canary poddisruptionbudget/api-canary --ignore-not-found
}

if [ $mode = abort ]; then
  remove_canary
  echo 'release: the canary is gone; its migration stays, and the old version works with it'
  exit 0
fi

# Of a Job: Complete, Failed, or nothing while it is under way.
job_end() {
  in_namespace get job migrate --output 'jsonpath={.status.conditions[?(@.status=="True")].type}' |
    tr ' ' '\n' | grep -xE 'Complete|Failed' || true
}

# Why the migration's pod does not run yet, or nothing: Unschedulable, ContainerCreating, ImagePullBackOff and the like.
waiting_reason() {
  in_namespace get pods --selector app.kubernetes.io/component=migrate --output \
    'jsonpath={.items[*].status.conditions[?(@.type=="PodScheduled")].reason} {.items[*].status.containerStatuses[*].state.waiting.reason}' |
    xargs || true
}

# No waiting mends these: the image, or what the pod takes its settings from, has to be set right.
cannot_start='ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainerConfigError'

# api and worker are of one image and go back together.
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
      echo "release: deployment/$deployment does not come on; to go back, set the tag of the release before and run this" >&2
      echo "again, or, where nothing else was changed since:" >&2
      echo "  kubectl --namespace $namespace rollout undo $(name_with_partner "$deployment")" >&2
      exit 1
    fi
  done
}

echo "== check"
# What the cluster does not know (an operator that is not installed, an API that is too old) it says here, and nothing is
# changed. A migration that is there is left out: a Job cannot be changed.
if ! kubectl apply --dry-run=server --filename "$manifests" --selector 'app.kubernetes.io/component notin (migrate)' >/dev/null; then
  echo 'release: the cluster refuses these objects; nothing was changed' >&2
  exit 1
fi

echo "== migrate"
# The last one goes, and its pods with it before the next one begins.
in_namespace delete job migrate --ignore-not-found --cascade=foreground --timeout=5m
# Nothing that runs is changed before the schema is; the migration goes straight to Postgres, not by PgBouncer.
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
    end="not over after $migration_limit_seconds s"
    break
  fi
  sleep 1
done
in_namespace logs job/migrate --tail=100 || echo 'the migration left no log'
if [ "$end" != Complete ]; then
  echo "release: the migration is $end; the pods were left as they were" >&2
  exit 1
fi

echo "== roll out"
# PgBouncer first: a pod of the service that cannot reach Postgres when it starts ends, and is started again later.
kubectl apply --filename "$manifests" --selector 'app.kubernetes.io/component notin (api, worker)'
await_roll_outs --selector app.kubernetes.io/name=pgbouncer
if [ $mode = canary ]; then
  serving=$(in_namespace get deployment api --output 'jsonpath={.status.readyReplicas}')
  pods=$(((${serving:-1} * weight + 99) / 100))
  node "$folder/canary.mjs" objects "$manifests" "$pods" | kubectl apply --filename -
  # Requests come only when its pods serve.
  if ! in_namespace rollout status deployment/api-canary --timeout="$roll_out_limit"; then
    echo 'release: the canary does not come on, and gets no requests; k8s/release.sh --abort takes it away' >&2
    exit 1
  fi
  node "$folder/canary.mjs" route "$manifests" "$weight" | kubectl apply --filename -
  echo "release: the canary serves $weight % of the requests; go on with --compare, then with --abort, or without an option"
  exit 0
fi
kubectl apply --filename "$manifests"
await_roll_outs
remove_canary
echo 'release: done'
