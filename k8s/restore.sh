#!/usr/bin/env bash
# Restores a backup: k8s/restore.sh FILE, with DATABASE_URL of an empty database, straight to Postgres, as the role that owns
# it. The roles of k8s/database/administrator.sql must be there; in a new cluster, make them first. All of it or nothing.
set -euo pipefail
file=$1
: "${DATABASE_URL:?of an empty database, straight to Postgres, as its owner}"
# Owners and rights are the new place's: roles.sql grants them.
pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$DATABASE_URL" "$file"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/roles.sql"
# Ids go on above all that were given after the backup by themselves (sql/functions/min-id-now.sql).
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --command='analyze'
echo 'restore: done; delete and revoke again what was deleted and revoked since the backup'
