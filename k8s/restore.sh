#!/usr/bin/env bash
# Restores a backup: k8s/restore.sh FILE, with DATABASE_URL of an empty database, straight to Postgres, as the role that owns
# it. The roles of k8s/database/administrator.sql must be there; in a new cluster, make them first. All of it or nothing, but with
# JOBS above 1, which is faster.
set -euo pipefail
file=$1
: "${DATABASE_URL:?of an empty database, straight to Postgres, as its owner}"
# Owners and rights are the new place's: roles.sql grants them.
# Several jobs cannot share a transaction: where one fails, drop the database and begin again.
jobs=${JOBS:-1}
if [ "$jobs" -gt 1 ]; then how=("--jobs=$jobs"); else how=(--single-transaction); fi
pg_restore --exit-on-error "${how[@]}" --no-owner --no-privileges --dbname="$DATABASE_URL" "$file"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/roles.sql"
# Ids go on above all that were given after the backup by themselves (sql/functions/min-id-now.sql).
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --command='analyze'
# What to compare with the database that was lost, or with the dashboard of that time.
psql --no-psqlrc --expanded --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/check.sql"
echo 'restore: done; delete and revoke again what was deleted and revoked since the backup'
