#!/usr/bin/env bash
# Restores a backup: k8s/restore.sh FILE, with DATABASE_URL of an empty database, straight to Postgres, as the role that owns
# it. The roles of k8s/database/roles.sql must be there; in a new cluster, create them first. All of it or nothing.
set -euo pipefail
file=$1
: "${DATABASE_URL:?of an empty database, straight to Postgres, as its owner}"
# Owners and rights are the new place's: roles.sql grants them.
pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$DATABASE_URL" "$file"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --file="$(dirname "$0")/database/roles.sql"
# Clients know the ids that were given after the backup: none of them is given a second time, for a cursor would miss what
# has it. A billion is more than were given since, and nine millions of it fit below 2^53.
psql --no-psqlrc --quiet --output=/dev/null --set=ON_ERROR_STOP=1 --dbname="$DATABASE_URL" --command="
  select setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 0) + 1000000000)
  from pg_sequences where schemaname = current_schema;
  analyze"
echo 'restore: done; delete and revoke again what was deleted and revoked since the backup'
