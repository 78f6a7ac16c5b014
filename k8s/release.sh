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

echo "== migrate"
# A Job cannot be changed, so the last one goes. Its pods go with it before the next one begins.
in_namespace delete job migrate --ignore-not-found --cascade=foreground
kubectl apply --filename "$manifests" --selector 'app.kubernetes.io/component notin (api, worker)'
give_up_at=$((SECONDS + migration_limit_seconds))
until end=$(job_end) && [ -n "$end" ]; do
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
kubectl apply --filename "$manifests"
for deployment in $(in_namespace get deployments --output 'jsonpath={.items[*].metadata.name}'); do
  if ! in_namespace rollout status "deployment/$deployment" --timeout="$roll_out_limit"; then
    echo "release: deployment/$deployment does not come on; to go back:" >&2
    echo "  kubectl --namespace $namespace rollout undo deployment/$deployment" >&2
    exit 1
  fi
done
echo 'release: done'
