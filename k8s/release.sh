#!/usr/bin/env bash
# Installs or upgrades: k8s/release.sh [overlay], by default k8s/overlays/production. The schema comes first, then the pods:
# where the migration fails, or a roll-out does not come on, it prints why, stops and ends with 1. It may be run again.
set -euo pipefail
overlay=${1:-"$(dirname "$0")/overlays/production"}
migration_limit_seconds=${MIGRATION_LIMIT_SECONDS:-3700} # above the Job's own activeDeadlineSeconds
roll_out_limit=${ROLL_OUT_LIMIT:-20m}

manifests=$(mktemp)
trap 'rm -f "$manifests"' EXIT
kubectl kustomize "$overlay" >"$manifests"
namespace=$(sed -n '/^kind: Namespace$/,/^---$/s/^  name: //p' "$manifests" | head -n 1)
in_namespace() { kubectl --namespace "$namespace" "$@"; }

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
kubectl apply --filename "$manifests"
await_roll_outs
echo 'release: done'
