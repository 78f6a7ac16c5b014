#!/usr/bin/env bash
# Restores a backup: k8s/restore.sh FILE
# DATABASE_URL must name an empty database and the role that owns it, and must lead directly to Postgres. The roles of
# k8s/database/administrator.sql must exist: on a new server, create them first. By default, the script restores
# everything or nothing. With JOBS above 1 the restore is faster, but if it fails, a part of the data remains.
set -euo pipefail
file=$1
: "${DATABASE_URL:?of an empty database, directly to Postgres, as its owner}"
# Does not restore owners and rights: the role of DATABASE_URL owns the restored tables, and roles.sql grants rights.
# Several jobs cannot share one transaction. If one of the jobs fails, drop the database and start again.
jobs=${JOBS:-1}
if [ "$jobs" -gt 1 ]; then how=("--jobs=$jobs"); else how=(--single-transaction); fi
pg_restore --exit-on-error "${how[@]}" --no-owner --no-privileges --dbname="$DATABASE_URL" "$file"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/roles.sql"
# A backup contains no statistics for the query planner, so `analyze` collects them. Ids need no adjustment: new ids
# exceed all ids that were assigned after the backup (sql/functions/min-id-now.sql).
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --command='analyze'
# Compare the printed counts with the counts of the lost database, or with what the dashboard showed before the loss.
psql --no-psqlrc --expanded --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/check.sql"
echo 'restore: done; repeat the deletions and revocations since the backup'
